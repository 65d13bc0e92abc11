// A process with little of everything, or with more rights than its user.
#include <sys/stat.h>
#include <sys/xattr.h>
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
  for (const std::string name : {"no_descriptors", "many_descriptors"}) {
    if (kSanitized && name == "no_descriptors") continue;
    const Folder folder;
    const Outcome outcome = run_case(name, {{"GPUPOOL_STATS_PATH", folder / "report"}});
    INFO(name << "\n" << outcome.out << outcome.err);
    CHECK(outcome.status == 0);
  }
}

namespace {

// What setcap(8) would write: one right, permitted and in effect.
bool give_capability(const std::string& program) {
  constexpr std::uint32_t kEffectiveOfRevision2 = 0x02000001;
  constexpr std::uint32_t kNetRaw = 1u << 13;
  const std::uint32_t words[] = {kEffectiveOfRevision2, kNetRaw, 0, 0, 0};
  return setxattr(program.c_str(), "security.capability", words, sizeof words, 0) == 0;
}

}  // namespace

TEST_CASE("a program with a capability ignores everything") {
  if (geteuid() != 0 || kSanitized) return;  // only root can make one
  const Folder folder;
  const std::string program = folder / "program";
  std::filesystem::copy_file(GPUPOOL_TEST_LINKED_PROGRAM, program);
  REQUIRE(chmod((folder / "").c_str(), 0777) == 0);
  const Environment settings{{"GPUPOOL_STATS_PATH", folder / "report"}, {"GPUPOOL_LOG_LEVEL", "trace"}};
  const std::vector<std::string> as_other{"/usr/bin/setpriv", "--reuid=12345", "--clear-groups", program, "plain"};
  run_program(as_other, settings, Preload::kNone);
  // Where that user cannot reach the build, or the file system knows no capabilities, nothing can be shown.
  if (folder.files() != std::vector<std::string>{"program", "report"} || !give_capability(program)) return;
  REQUIRE(unlink((folder / "report").c_str()) == 0);
  const Outcome outcome = run_program(as_other, settings, Preload::kNone);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.status == 0);
  CHECK(outcome.err.empty());
  CHECK(folder.files() == std::vector<std::string>{"program"});
}

TEST_CASE("a program with more rights than its user ignores everything") {
  if (geteuid() != 0 || kSanitized) return;  // only root can make one for another user
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
