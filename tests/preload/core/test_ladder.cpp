// What a program meets at the end of the card's memory: the driver in place of the pool, a verdict with its numbers,
// settings that help, and a run that ends slowly instead of not at all.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/preload/core/run.h"

using namespace gpupool::tests;
using nlohmann::json;

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

json report_of(const Folder& folder) { return json::parse(read_file(folder / "report")); }

}  // namespace

TEST_CASE("a pool that gets no memory leaves every request to the driver") {
  for (const char* strategy : {"best_fit", "auto_growth"}) {
    const Folder folder;
    const Outcome outcome = run_case("plain", {{"GPUPOOL_POOL_STRATEGY", strategy},
                                               {"GPUPOOL_SIM_FAULT", "cuMemCreate:*=2"},
                                               {"GPUPOOL_STATS_PATH", folder / "report"}});
    INFO(outcome.out << outcome.err);
    CHECK(outcome.status == 0);
    CHECK_FALSE(contains(outcome.err, "out of memory"));
    const json report = report_of(folder);
    CHECK(report["pools"].at(0)["requests"] == 0);
    CHECK(report["pools"].at(0)["reserved.peak"] == 0);
    CHECK(report["past_the_pool"].at(0)["calls"] == 7);
  }
}

TEST_CASE("where the driver has nothing either, the program gets its error, and the verdict is capacity") {
  const Outcome outcome = run_case(
      "plain", {{"GPUPOOL_POOL_STRATEGY", "auto_growth"}, {"GPUPOOL_SIM_FAULT", "cuMemCreate:*=2;cuMemAlloc_v2:*=2"}});
  CHECK(outcome.status == 1);
  CHECK(contains(outcome.out, "got 2, expected 0"));
  CHECK(contains(outcome.err, "out of memory on device 0 (capacity): request 1 bytes, live 0 bytes, reserved 0 bytes"));
}

TEST_CASE("fragmentation is said with its numbers, and the setting that is named helps") {
  CHECK(run_case("fragmented", {}, Preload::kNone).status == 0);
  const Folder folder;
  const Environment large = {{"GPUPOOL_POOL_HANDLE", "64MiB"}, {"GPUPOOL_STATS_PATH", folder / "report"}};
  const Outcome outcome = run_case("fragmented", large);
  CHECK(outcome.status == 1);
  CHECK(contains(outcome.err, "out of memory on device 0 (fragmentation): request 1.2 GiB"));
  CHECK(contains(outcome.err, "largest hole 32 MiB"));
  CHECK(contains(outcome.err, "set pool.handle=2MiB"));
  CHECK(report_of(folder)["pools"].at(0)["oom_fragmentation"] == 1);
  for (const char* strategy : {"best_fit", "auto_growth"}) {
    const Outcome helped =
        run_case("fragmented", {{"GPUPOOL_POOL_HANDLE", "2MiB"}, {"GPUPOOL_POOL_STRATEGY", strategy}});
    INFO(helped.out << helped.err);
    CHECK(helped.status == 0);
  }
}

TEST_CASE("the page that a refusal points to has each remedy, and what helps in the program") {
  std::ifstream file(GPUPOOL_TEST_SOURCE "/docs/out-of-memory.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const char* remedy :
       {"raise pool.max", "end what else runs on the card, or give each process its share with pool.max",
        "use less memory", "set pool.handle=2MiB", "pool.max_split", "pool.overflow=host", "pool.overflow_max",
        "smaller batch", "Gradient accumulation", "Checkpointing", "Mixed precision"}) {
    INFO(remedy);
    CHECK(contains(page, remedy));
  }
}

TEST_CASE("a program whose steps are larger than the card ends with overflow, and only with it") {
  CHECK(run_case("step_larger_than_the_card", {}, Preload::kNone).status != 0);
  CHECK(run_case("step_larger_than_the_card").status != 0);
  for (const char* strategy : {"best_fit", "auto_growth"}) {
    const Folder folder;
    const Outcome outcome = run_case("step_larger_than_the_card", {{"GPUPOOL_POOL_OVERFLOW", "host"},
                                                                   {"GPUPOOL_POOL_OVERFLOW_MAX", "2GiB"},
                                                                   {"GPUPOOL_POOL_STRATEGY", strategy},
                                                                   {"GPUPOOL_STATS_PATH", folder / "report"}});
    INFO(outcome.out << outcome.err);
    CHECK(outcome.status == 0);
    CHECK(times(outcome.err, "memory of the host stands in (pool.overflow=host)") == 1);
    CHECK(contains(outcome.err, "overflow.peak"));
    const json pool = report_of(folder)["pools"].at(0);
    CHECK(pool["overflows"] > 3);
    CHECK(pool["overflow_live"] == 0);
    CHECK(pool["live.peak"] > 4ULL << 30);
    CHECK(pool["reserved.peak"] < 4ULL << 30);
  }
}
