// Memory between processes: an importer gets exactly the exporter's block, whatever the block is made of.
#include "tests/cases/passes.h"

using namespace gpupool::tests;

namespace {

const Environment kWays[] = {{{"TEST_POOLED", "1"}},
                             {{"GPUPOOL_POOL_STRATEGY", "auto_growth"}, {"TEST_POOLED", "1"}},
                             {{"GPUPOOL_POOL_HANDLE", "2MiB"}, {"TEST_POOLED", "1"}},
                             {{"GPUPOOL_POOL_BACKING", "arena"}, {"TEST_POOLED", "1"}},
                             {{"GPUPOOL_POOL_STRATEGY", "passthrough"}},
                             {{"GPUPOOL_POOL_DIRECT_ABOVE", "16MiB"}}};

void passes_silently(const std::string& name, const Environment& settings, Preload preload = Preload::kFront) {
  const Outcome outcome = passes(name, settings, preload);
  INFO(name << "\n" << outcome.out);
  CHECK(outcome.out.empty());
}

}  // namespace

TEST_CASE("an importer gets exactly the block, and keeps it", "[case-17][case-18]") {
  passes_silently("share_blocks", {}, Preload::kNone);
  for (const Environment& way : kWays) passes_silently("share_blocks", way);
}

TEST_CASE("an importer on another device reaches the block", "[case-50]") {
  passes_silently("share_blocks", {{"TEST_IMPORTERS_DEVICE", "1"}}, Preload::kNone);
  for (Environment way : kWays) {
    way["TEST_IMPORTERS_DEVICE"] = "1";
    passes_silently("share_blocks", way);
  }
}

TEST_CASE("an importer is told the truth about an opened block") {
  for (const Environment& way : {kWays[0], kWays[1]}) passes_silently("share_range", way);
}

TEST_CASE("an importer on the plain driver gets the block or an error", "[case-17]") {
  passes_silently("share_with_plain", {}, Preload::kNone);
  for (const Environment& way : kWays) passes_silently("share_with_plain", way);
}

TEST_CASE("forged, freed and foreign handles are refused") {
  for (const Environment& way : {kWays[0], kWays[1]}) passes_silently("share_wrongly", way);
}

TEST_CASE("blocks are shared again and again") {
  for (const Environment& way : kWays) passes_silently("share_many_times", way);
}

TEST_CASE("opened blocks go with their context, exported ones with a reset") {
  passes_silently("share_over_resets", {}, Preload::kNone);
  for (const Environment& way : {kWays[0], kWays[1]}) passes_silently("share_over_resets", way);
  // The first block of a slab has the driver's own handle, which may name what lies there after a reset.
  passes_silently("share_over_resets", {{"GPUPOOL_POOL_BACKING", "arena"}});
}

TEST_CASE("threads of an importer open, close and fork at once") {
  for (const Environment& way : {kWays[0], kWays[1], kWays[3]}) passes_silently("share_with_threads", way);
}

TEST_CASE("what was exported and freed comes back", "[case-18]") {
  for (const Environment& way : kWays) passes_silently("share_more_than_there_is", way);
}

TEST_CASE("what is open elsewhere keeps its content, and no more than that is kept", "[case-18]") {
  for (Environment way : {kWays[0], kWays[1], kWays[2], kWays[3]}) {
    way.insert({{"GPUPOOL_SIM_MEMORY", "512MiB"}, {"GPUPOOL_POOL_HEADROOM", "32MiB"}});
    passes_silently("share_in_turn", way);
  }
}
