// Where files shall lie: places that are not what they seem, and disks that do not take them.
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/catch.h"
#include "tests/preload/core/run.h"

using namespace gpupool::tests;

namespace {

const std::string kVictim = "somebody's own words\n";

std::string make_victim(const Folder& folder) {
  const std::string path = folder / "victim";
  std::ofstream(path) << kVictim;
  return path;
}

// A log line is sure to be written.
Outcome run_with_log(const std::string& path) {
  return run_case("plain",
                  {{"GPUPOOL_LOG_PATH", path}, {"GPUPOOL_POOL_SIZE", "nonsense"}, {"GPUPOOL_STATS_SUMMARY", "off"}});
}

}  // namespace

TEST_CASE("a report replaces nothing and follows nothing") {
  const Folder folder;
  const std::string victim = make_victim(folder);
  REQUIRE(symlink(victim.c_str(), (folder / "link").c_str()) == 0);
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  for (const char* name : {"victim", "link", "pipe"}) {
    CHECK(run_case("plain", {{"GPUPOOL_STATS_PATH", folder / name}}).status == 0);
  }
  CHECK(read_file(victim) == kVictim);
  CHECK(folder.files() == std::vector<std::string>{"link", "link.1", "pipe", "victim", "victim.1"});
}

TEST_CASE("a log follows no link, waits for no pipe, and is added to no file of another user") {
  const Folder folder;
  const std::string victim = make_victim(folder);
  REQUIRE(symlink(victim.c_str(), (folder / "link").c_str()) == 0);
  REQUIRE(link(victim.c_str(), (folder / "hard").c_str()) == 0);
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  for (const char* name : {"link", "hard", "pipe"}) {
    const Outcome outcome = run_with_log(folder / name);
    CHECK(outcome.status == 0);
    CHECK(outcome.err.find("nonsense") != std::string::npos);  // said where it can be said
  }
  CHECK(read_file(victim) == kVictim);
  CHECK(run_with_log(folder / "own").err.empty());
  CHECK(read_file(folder / "own").find("nonsense") != std::string::npos);
  struct stat status {};
  REQUIRE(stat((folder / "own").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  if (geteuid() == 0) {  // only root can give files away
    REQUIRE(unlink((folder / "hard").c_str()) == 0);
    REQUIRE(chown(victim.c_str(), 12345, 12345) == 0);
    CHECK(run_with_log(victim).err.find("nonsense") != std::string::npos);
    CHECK(read_file(victim) == kVictim);
  }
}

// Whoever may write to the folder has been there first, with every name that could be foreseen.
TEST_CASE("a folder that everybody may write to") {
  const Folder folder;
  const Folder elsewhere;
  const std::string victim = make_victim(elsewhere);
  REQUIRE(chmod((folder / "").c_str(), 0777) == 0);
  const Environment settings{{"GPUPOOL_STATS_PATH", folder / "report"}, {"GPUPOOL_TRACE_PATH", folder / "trace"}};
  const std::vector<std::string> foreseen{"report", "report.1", "trace", "trace.1"};
  for (const std::string& name : foreseen) {
    if (name.ends_with(".1")) {
      std::ofstream(folder / name) << kVictim;
      if (geteuid() == 0) REQUIRE(chown((folder / name).c_str(), 12345, 12345) == 0);
    } else {
      REQUIRE(symlink(victim.c_str(), (folder / name).c_str()) == 0);
    }
  }
  CHECK(run_case("plain", settings).status == 0);
  CHECK(read_file(victim) == kVictim);
  for (const std::string& name : foreseen) CHECK(read_file(folder / name) == kVictim);
  CHECK(folder.files().size() == foreseen.size() + 2);
  for (const char* name : {"report.2", "trace.2"}) {
    struct stat status {};
    REQUIRE(lstat((folder / name).c_str(), &status) == 0);
    CHECK(S_ISREG(status.st_mode));
    CHECK((status.st_mode & 0777) == 0600);
    CHECK(status.st_uid == geteuid());
  }
}

TEST_CASE("names are names: no format, no shell") {
  const Folder folder;
  const std::string name = "%s%n$(touch x);`touch y` z";
  const Outcome outcome = run_case("plain", {{"GPUPOOL_STATS_PATH", folder / name}, {"GPUPOOL_STATS_SUMMARY", "off"}});
  CHECK(outcome.status == 0);
  CHECK(outcome.err.empty());
  CHECK(folder.files() == std::vector<std::string>{name});
}

TEST_CASE("whatever a name holds, what is said of it is one line without control characters") {
  const Folder folder;
  for (const char* key : {"GPUPOOL_STATS_PATH", "GPUPOOL_LOG_PATH", "GPUPOOL_CONFIG", "GPUPOOL_POOL_SIZE"}) {
    const Outcome outcome = run_case("plain", {{key, folder / "none/a\n\x1b[31mz"}, {"GPUPOOL_STATS_SUMMARY", "off"}});
    INFO(key << "\n" << outcome.err);
    CHECK(outcome.status == 0);
    CHECK(outcome.err.find('\x1b') == std::string::npos);
    CHECK(outcome.err.find("\nz") == std::string::npos);
  }
}

TEST_CASE("a disk that takes nothing, or not all of it, keeps no half report and ends no program") {
  CHECK(run_case("plain", {{"GPUPOOL_STATS_PATH", "/proc/nothing/here"}}).status == 0);
  CHECK(run_case("plain", {{"GPUPOOL_STATS_PATH", "/dev/full/report"}}).status == 0);
  for (const char* name : {"no_disk", "little_disk"}) {
    const Folder folder;
    const Outcome outcome = run_case(name, {{"GPUPOOL_STATS_PATH", folder / "report"},
                                            {"GPUPOOL_LOG_PATH", folder / "log"},
                                            {"GPUPOOL_LOG_LEVEL", "trace"}});
    INFO(name << "\n" << outcome.err);
    CHECK(outcome.status == 0);
    CHECK(folder.files() == std::vector<std::string>{"log"});
  }
}

TEST_CASE("a disk that vanishes while report, trace, log and page are written costs them and not the program") {
  const Folder folder;
  REQUIRE(mkdir((folder / "disk").c_str(), 0700) == 0);
  const std::string disk = folder / "disk/";
  const Outcome outcome = run_case("vanishing_disk", {{"CASE_FOLDER", disk},
                                                      {"GPUPOOL_STATS_PATH", disk + "report"},
                                                      {"GPUPOOL_STATS_PAGES", disk},
                                                      {"GPUPOOL_TRACE_PATH", disk + "trace"},
                                                      {"GPUPOOL_LOG_PATH", disk + "log"},
                                                      {"GPUPOOL_LOG_LEVEL", "trace"}});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.status == 0);
  CHECK(folder.files().empty());
}

TEST_CASE("nobody reads what is said, and the program ends as it would") { CHECK(run_case("closed_pipe").status == 0); }
