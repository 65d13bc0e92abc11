// Starts, forks and ends of processes under the preload.
#include <csignal>

#include <nlohmann/json.hpp>

#include "tests/cases/passes.h"

using namespace gpupool::tests;
using nlohmann::json;

TEST_CASE("errno stays the program's", "[case-11]") {
  passes("errno_is_kept");
  passes("errno_is_kept", {{"GPUPOOL_POOL_STRATEGY", "auto_growth"}});
}

TEST_CASE("signal dispositions stay the program's", "[case-11][case-30]") { passes("signals"); }

TEST_CASE("nothing calls the driver before the program does", "[case-12]") {
  const Folder folder;
  passes("no_call_before_ours", {{"GPUPOOL_SIM_TRACE", folder / "calls"}});
  CHECK(read_file(folder / "calls").rfind("cuInit(", 0) == 0);
  passes("late_environment");
}

TEST_CASE("children of a busy parent end, and leave its report alone", "[case-13]") {
  const Folder folder;
  passes("forks", {{"GPUPOOL_STATS_PATH", folder / "report"}});
  REQUIRE(folder.files() == std::vector<std::string>{"report"});
  const json report = json::parse(read_file(folder / "report"));
  CHECK(report["pools"].at(0)["requests"] == report["pools"].at(0)["frees"]);
}

TEST_CASE("a free as the first call, and cudaFree of what others made", "[case-15]") {
  passes("first_free");
  passes("first_free", {{"GPUPOOL_POOL_STRATEGY", "auto_growth"}});
}

TEST_CASE("frees at the very end neither crash nor change the exit status", "[case-29]") {
  for (const char* reuse : {"fence", "sync", "quiescent"}) {
    CHECK(run_case("end_by_return", {{"GPUPOOL_POOL_REUSE", reuse}}).status == 0);
    CHECK(run_case("end_by_exit", {{"GPUPOOL_POOL_REUSE", reuse}}).status == 3);
    passes("closed_library", {{"GPUPOOL_POOL_REUSE", reuse}});
  }
}

TEST_CASE("the driver is not called at the end of a process", "[case-29]") {
  for (const char* strategy : {"best_fit", "auto_growth"}) {
    const Folder folder;
    // Small enough to be there before the program ends: a thread that still maps goes on until the core is told.
    passes(
        "end_by_asking",
        {{"GPUPOOL_SIM_TRACE", folder / "calls"}, {"GPUPOOL_POOL_STRATEGY", strategy}, {"GPUPOOL_POOL_SIZE", "64MiB"}});
    const std::string calls = read_file(folder / "calls");
    const std::size_t last = calls.rfind("\ncuDriverGetVersion(");
    REQUIRE(last != std::string::npos);
    CHECK(calls.find('\n', last + 1) + 1 == calls.size());
  }
}

TEST_CASE("however a process ends, its report is whole or absent and its status its own", "[case-30]") {
  struct End {
    const char* name;
    int status;
    bool reports;
  };
  for (const End& end : {End{"end_by_return", 0, true}, End{"end_by_exit", 3, true}, End{"end_by__exit", 4, false},
                         End{"end_by_abort", 128 + SIGABRT, false}, End{"end_by_term", 128 + SIGTERM, false},
                         End{"end_by_kill", 128 + SIGKILL, false}}) {
    const Folder folder;
    const Outcome outcome = run_case(end.name, {{"GPUPOOL_STATS_PATH", folder / "report"}});
    INFO(end.name << "\n" << outcome.out << outcome.err);
    CHECK(outcome.status == end.status);
    const std::vector<std::string> files = folder.files();
    if (end.reports) REQUIRE(files == std::vector<std::string>{"report"});
    for (const std::string& file : files) CHECK(json::parse(read_file(folder / file))["gpupool_report"] == 1);
  }
}

TEST_CASE("processes share a card: a reservation that does not fit shrinks, and nobody fails", "[case-34]") {
  const Folder folder;
  passes("three_sharers", {{"GPUPOOL_SIM_CARD", folder / "card"}, {"GPUPOOL_POOL_SIZE", "30%"}});
  passes("three_sharers", {{"GPUPOOL_SIM_CARD", folder / "card2"}, {"GPUPOOL_POOL_SIZE", "70%"}});
}

TEST_CASE("CUDA_VISIBLE_DEVICES is the driver's to read", "[case-49]") {
  const char* const lists[] = {
      "", "-1", "1,0", "0,99,1", "GPU-abcd", "MIG-41b35014-0f2a-5ac3-9d7e-3a8f1d6c7e10", "none", "GPU-,,", ","};
  for (const char* list : lists) {
    const Environment settings = {{"CUDA_VISIBLE_DEVICES", list}};
    const Outcome native = run_case("visible_devices", settings, Preload::kNone);
    const Outcome preloaded = run_case("visible_devices", settings);
    INFO(list << "\n" << preloaded.err);
    CHECK(preloaded.status == native.status);
    CHECK(preloaded.out == native.out);
  }
}
