// Which files are read, and which are refused.
#include "config/file.h"

#include "tests/catch.h"
#include "tests/config/support.h"

using namespace gpupool;
using test::Folder;

TEST_CASE("a regular file is read whole", "[config][case-38]") {
  const Folder folder;
  const FileText read = read_config_file(folder.write("a.json", "{\"a\":\n1}"));
  CHECK(read.problem.empty());
  CHECK(read.text == "{\"a\":\n1}");
  CHECK(read_config_file(folder.write("empty.json", "")).problem.empty());
  const FileText full = read_config_file(folder.write("full.json", std::string(kLargestFile, ' ')));
  CHECK(full.text.size() == kLargestFile);
}

TEST_CASE("everything else is refused by name", "[config][case-38]") {
  const Folder folder;
  const std::string path = folder.write("a.json", "{}");
  CHECK(read_config_file(folder.path("none.json")).problem == "does not exist");
  CHECK(read_config_file(folder.path("")).problem == "is a directory");
  CHECK(read_config_file(path + "/b").problem == "lies below something that is no directory");
  CHECK(read_config_file(folder.write("huge.json", std::string(kLargestFile + 1, ' '))).problem ==
        "is larger than 1 MiB");
  CHECK(read_config_file("/dev/zero").problem == "is not a regular file");

  const std::string fifo = folder.path("fifo");
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(read_config_file(fifo).problem == "is not a regular file");

  REQUIRE(chmod(path.c_str(), 0646) == 0);
  CHECK(read_config_file(path).problem == "may be written by every user");
  REQUIRE(chmod(path.c_str(), 0644) == 0);
  CHECK(read_config_file(path).problem.empty());

  if (geteuid() == 0) {  // only root can give files away
    REQUIRE(chown(path.c_str(), 12345, 12345) == 0);
    CHECK(read_config_file(path).problem == "belongs to another user");
  } else {
    REQUIRE(chmod(path.c_str(), 0) == 0);
    CHECK(read_config_file(path).problem == "may not be read by this user");
  }
}

TEST_CASE("no descriptor is left open", "[config]") {
  const Folder folder;
  const std::string path = folder.write("a.json", "{}");
  const int before = open("/dev/null", O_RDONLY);
  close(before);
  read_config_file(path);
  read_config_file(folder.path(""));
  const int after = open("/dev/null", O_RDONLY);
  close(after);
  CHECK(after == before);
}
