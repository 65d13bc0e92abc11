// A host whose clock is set, whose disks are slow, or whose shared memory takes nothing more.
#include <nlohmann/json.hpp>

#include "tests/preload/adverse/torture.h"

using namespace gpupool::tests;

namespace {

Environment strange(const std::string& how, const Folder& folder) {
  return {{"LD_PRELOAD", std::string(GPUPOOL_TEST_STRANGE_HOST) + ":" + GPUPOOL_TEST_FRONT},
          {"GPUPOOL_TEST_STRANGE", how},
          {"GPUPOOL_STATS_PATH", folder / "report"},
          {"GPUPOOL_STATS_INTERVAL", "0.1s"},
          {"GPUPOOL_TRACE_PATH", folder / "trace"}};
}

// The report is whole, and what it counts is what a process of this century could have counted.
void expect_report(const Folder& folder) {
  const auto report = nlohmann::json::parse(read_file(folder / "report"));
  REQUIRE_FALSE(report["pools"].empty());
  const auto& pool = report["pools"][0];
  CHECK(pool["requests"].get<std::uint64_t>() == pool["frees"].get<std::uint64_t>());
  CHECK(pool["pool_ns"].get<std::uint64_t>() < 600'000'000'000);
}

// Runs a case with pages, report and trace on a file system of its own, of that many bytes. False: this machine does
// not let us make one.
bool run_on_small_disk(const std::string& options, Outcome& outcome) {
  const Folder folder;
  const std::string script =
      "mount -t tmpfs -o " + options + " none \"$1\" || exit 99; shift; export LD_PRELOAD=\"$1\"; shift; exec \"$@\"";
  outcome = run_program({"/usr/bin/unshare", "-rm", "sh", "-c", script, "sh", folder / "", GPUPOOL_TEST_FRONT,
                         GPUPOOL_TEST_PROGRAM, "plain"},
                        {{"GPUPOOL_STATS_PAGES", folder / ""},
                         {"GPUPOOL_STATS_PATH", folder / "report"},
                         {"GPUPOOL_TRACE_PATH", folder / "trace"},
                         {"GPUPOOL_LOG_LEVEL", "info"}},
                        Preload::kNone);
  return outcome.status != 99 && outcome.status != 127 && outcome.err.find("unshare:") == std::string::npos;
}

}  // namespace

TEST_CASE("a clock that is set back and forth costs no right byte, and no report") {
  const Folder folder;
  expect_right_bytes(strange("clock", folder), "2000");
  expect_report(folder);
}

TEST_CASE("slow disks cost records of a trace at most") {
  const Folder folder;
  expect_right_bytes(strange("disk", folder), "2000");
  expect_report(folder);
  CHECK(folder.files() == std::vector<std::string>{"report", "trace"});
}

TEST_CASE(
    "disks and shared memory that are full, fill up, or may not be written cost what lies there, not the program") {
  for (const char* options : {"size=4k", "size=16k", "size=32k", "size=64k", "size=128k", "size=256k", "ro"}) {
    Outcome outcome;
    if (!run_on_small_disk(options, outcome)) return;
    INFO(options << "\n" << outcome.out << outcome.err);
    CHECK(outcome.status == 0);
  }
}
