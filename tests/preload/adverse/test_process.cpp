// A process with little of everything, or with more rights than its user.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/preload/adverse/torture.h"

using namespace gpupool::tests;

TEST_CASE("threads with stacks of 64 kB") {
  const Outcome outcome = run_case("small_stacks", {{"GPUPOOL_POOL_STRATEGY", "auto_growth"}});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.status == 0);
}

TEST_CASE("no descriptor left, and ten thousand taken") {
  for (const char* name : {"no_descriptors", "many_descriptors"}) {
    const Folder folder;
    const Outcome outcome = run_case(name, {{"GPUPOOL_STATS_PATH", folder / "report"}});
    INFO(name << "\n" << outcome.out << outcome.err);
    CHECK(outcome.status == 0);
  }
}

TEST_CASE("a program with more rights than its user ignores everything") {
  if (geteuid() != 0) return;  // only root can make one for another user
  const Folder folder;
  const std::string program = folder / "program";
  std::filesystem::copy_file(GPUPOOL_TEST_LINKED_PROGRAM, program);
  REQUIRE(chmod(std::filesystem::path(program).parent_path().c_str(), 0777) == 0);
  const Environment settings{{"GPUPOOL_STATS_PATH", folder / "report"}, {"GPUPOOL_LOG_LEVEL", "trace"}};
  CHECK(run_program({program, "plain"}, settings, Preload::kNone).status == 0);
  CHECK(folder.files() == std::vector<std::string>{"program", "report"});  // the front is linked in, and works
  REQUIRE(unlink((folder / "report").c_str()) == 0);
  REQUIRE(chown(program.c_str(), 12345, 12345) == 0);
  REQUIRE(chmod(program.c_str(), 04755) == 0);
  const Outcome outcome = run_program({program, "plain"}, settings, Preload::kNone);
  CHECK(outcome.err.empty());
  CHECK(folder.files() == std::vector<std::string>{"program"});
}
