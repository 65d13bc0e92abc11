// Memory as programs see it, on each backing and strategy; orders are seen in the data.
#include <nlohmann/json.hpp>

#include "tests/cases/passes.h"

using namespace gpupool::tests;
using nlohmann::json;

namespace {

const Environment kWays[] = {{},
                             {{"GPUPOOL_POOL_STRATEGY", "auto_growth"}},
                             {{"GPUPOOL_POOL_BACKING", "arena"}},
                             {{"GPUPOOL_POOL_DIRECT_ABOVE", "16MiB"}}};

void passes_every_way(const std::string& name, const Environment& settings = {}) {
  for (Environment way : kWays) {
    way.insert(settings.begin(), settings.end());
    passes(name, way);
  }
}

// What holds here holds natively too.
void as_natively(const std::string& name) {
  const Outcome native = run_case(name, {}, Preload::kNone);
  INFO("natively: " << native.out);
  CHECK(native.status == 0);
  passes_every_way(name);
}

// Of 4 GiB the pool itself leaves the default headroom and what others have, also when a program takes whatever it can
// get.
void leaves_headroom(const std::string& strategy, const std::string& backing) {
  const Folder folder;
  passes("takes_everything", {{"GPUPOOL_POOL_STRATEGY", strategy},
                              {"GPUPOOL_POOL_SIZE", "1GiB"},
                              {"GPUPOOL_POOL_BACKING", backing},
                              {"GPUPOOL_STATS_PATH", folder / "report"}});
  const json report = json::parse(read_file(folder / "report"));
  CHECK(report["pools"].at(0)["reserved.peak"] <= (std::uint64_t{4096} - 1024 - 512) << 20);
}

}  // namespace

TEST_CASE("a block is exported where its attribute says so, and nowhere else", "[case-17]") {
  as_natively("legacy_handles");
}

TEST_CASE("an exported block is not handed out again", "[case-18]") {
  passes("exported_stays");
  passes("exported_stays", {{"GPUPOOL_POOL_STRATEGY", "auto_growth"}});
}

TEST_CASE("memory registered with another device is not handed out again", "[case-18]") {
  passes("registered_stays");
  passes("registered_stays", {{"GPUPOOL_POOL_STRATEGY", "auto_growth"}});
}

TEST_CASE("memory that a descriptor was given out for is not handed out again", "[case-18]") {
  passes("described_stays");
  passes("described_stays", {{"GPUPOOL_POOL_STRATEGY", "auto_growth"}});
}

TEST_CASE("allocations inside a capture work or say that they do not, in every mode", "[case-19]") {
  passes_every_way("capture_modes");
  as_natively("capture_begun_otherwise");
  as_natively("capture_on_a_blocking_stream");
}

TEST_CASE("a card that is full while a capture is open loses no memory that is in use", "[case-21]") {
  passes_every_way("capture_short_of_memory");
}

TEST_CASE("memory that a kernel uses is given to nobody", "[case-21]") { as_natively("yield_under_a_kernel"); }

TEST_CASE("free memory falls and rises by what is allocated", "[case-22]") {
  passes("steady_free");
  passes("steady_free", {{"GPUPOOL_POOL_STRATEGY", "auto_growth"}});
  passes("steady_free", {{"GPUPOOL_POOL_BACKING", "arena"}});
}

TEST_CASE("an idle pool is no obstacle to a request of three quarters of the card", "[case-24]") {
  passes("three_quarters", {{"GPUPOOL_POOL_SIZE", "50%"}});
  passes("three_quarters", {{"GPUPOOL_POOL_SIZE", "50%"}, {"GPUPOOL_POOL_BACKING", "arena"}});
  passes("three_quarters", {{"GPUPOOL_POOL_MAX", "100GiB"}});
}

TEST_CASE("memory freed under a running kernel is its next owner's alone", "[case-25]") {
  as_natively("free_under_a_kernel");
  passes("free_under_a_kernel", {{"GPUPOOL_POOL_REUSE", "sync"}});
  passes("free_under_a_kernel", {{"GPUPOOL_POOL_REUSE", "quiescent"}});
}

TEST_CASE("the same between threads whose default streams are their own", "[case-27]") {
  as_natively("streams_of_threads");
  passes("streams_of_threads", {{"TEST_BY_HANDLE", "1"}});
}

TEST_CASE("what is taken beside the pool fits into the headroom", "[case-33]") {
  passes("beside_the_pool");
  passes("beside_the_pool", {{"GPUPOOL_POOL_STRATEGY", "auto_growth"}});
  for (const char* strategy : {"best_fit", "auto_growth"}) {
    for (const char* backing : {"vmm", "arena"}) leaves_headroom(strategy, backing);
  }
}

TEST_CASE("addresses have the alignment of textures", "[case-40]") { as_natively("alignment"); }

TEST_CASE("a pitched block is pitch times height", "[case-41]") { as_natively("pitched"); }

TEST_CASE("requests for nothing", "[case-42]") {
  as_natively("zero_size");
  const Folder folder;
  passes("zero_size", {{"GPUPOOL_STATS_PATH", folder / "report"}});
  const json report = json::parse(read_file(folder / "report"));
  CHECK(report["pools"].at(0)["live"] == 0);
  CHECK(report["pools"].at(0)["requests"] == 1);
  CHECK(report["pools"].at(0)["frees"] == 1);
}

TEST_CASE("wrong frees are refused and spoil nothing; foreign ones are forwarded", "[case-43]") {
  as_natively("wrong_frees");
}

TEST_CASE("sizes that wrap, and sizes past 32 bits", "[case-44]") {
  const Environment large = {{"GPUPOOL_SIM_MEMORY", "16GiB"}};
  CHECK(run_case("huge", large, Preload::kNone).status == 0);
  passes_every_way("huge", large);
}

TEST_CASE("requests of exactly what there is", "[case-45]") {
  const Folder folder;
  passes_every_way(
      "exact_fits",
      {{"GPUPOOL_POOL_SIZE", "100000001"}, {"GPUPOOL_POOL_GROWTH", "64MiB"}, {"GPUPOOL_POOL_MAX", "256MiB"}});
  passes(
      "exact_fits",
      {{"GPUPOOL_POOL_SIZE", "100000001"}, {"GPUPOOL_POOL_MAX", "256MiB"}, {"GPUPOOL_STATS_PATH", folder / "report"}});
  const json report = json::parse(read_file(folder / "report"));
  CHECK(report["pools"].at(0)["reserved.peak"] <= 256 << 20);
}

TEST_CASE("a block belongs to the device of its address, whatever is current", "[case-48]") {
  passes_every_way("owner_by_address");
  passes_every_way("no_stray_context");
}

TEST_CASE("peer access before and after the pool exists; a context goes alone", "[case-50]") {
  as_natively("peers");
  as_natively("peers_before_the_pool");
  as_natively("context_goes");
  as_natively("context_goes_with_its_streams");
  as_natively("ordered_outlives_its_context");
  as_natively("ordered_outlives_before_the_primary_has_any");
  as_natively("ordered_without_a_primary");
  passes("late_frees_after_a_reset", {}, Preload::kNone);
  for (const Environment& way : {kWays[0], kWays[1], kWays[3]}) passes("late_frees_after_a_reset", way);
  as_natively("free_without_a_context");
}

TEST_CASE("what a device cannot have is said once, not for each of its contexts", "[case-39]") {
  const Outcome outcome =
      passes("contexts_come_and_go", {{"GPUPOOL_POOL_SIZE", "100%"}, {"GPUPOOL_STATS_SUMMARY", "off"}});
  const std::size_t first = outcome.err.find("pool.headroom");
  REQUIRE(first != std::string::npos);
  CHECK(outcome.err.find("pool.headroom", first + 200) == std::string::npos);
}
