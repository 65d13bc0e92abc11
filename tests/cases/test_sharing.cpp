// Memory between processes: an importer gets exactly the exporter's block, whatever the block is made of.
#include "tests/catch.h"
#include "tests/preload/core/run.h"

using namespace gpupool::tests;

namespace {

const Environment kWays[] = {{{"TEST_POOLED", "1"}},
                             {{"GPUPOOL_POOL_STRATEGY", "auto_growth"}, {"TEST_POOLED", "1"}},
                             {{"GPUPOOL_POOL_HANDLE", "2MiB"}, {"TEST_POOLED", "1"}},
                             {{"GPUPOOL_POOL_BACKING", "arena"}, {"TEST_POOLED", "1"}},
                             {{"GPUPOOL_POOL_STRATEGY", "passthrough"}},
                             {{"GPUPOOL_POOL_DIRECT_ABOVE", "16MiB"}}};

void passes(const std::string& name, const Environment& settings, Preload preload = Preload::kFront) {
  const Outcome outcome = run_case(name, settings, preload);
  std::string how;
  for (const auto& [key, value] : settings) how += key + "=" + value + " ";
  INFO(name << " " << how << "\n" << outcome.out << outcome.err);
  CHECK(outcome.status == 0);
  CHECK(outcome.out.empty());
}

}  // namespace

TEST_CASE("an importer gets exactly the block, and keeps it", "[case-17][case-18]") {
  passes("share_blocks", {}, Preload::kNone);
  for (const Environment& way : kWays) passes("share_blocks", way);
}

TEST_CASE("an importer on another device reaches the block", "[case-50]") {
  passes("share_blocks", {{"TEST_IMPORTERS_DEVICE", "1"}}, Preload::kNone);
  for (Environment way : kWays) {
    way["TEST_IMPORTERS_DEVICE"] = "1";
    passes("share_blocks", way);
  }
}

TEST_CASE("an importer is told the truth about an opened block") {
  for (const Environment& way : {kWays[0], kWays[1]}) passes("share_range", way);
}

TEST_CASE("an importer on the plain driver gets the block or an error", "[case-17]") {
  passes("share_with_plain", {}, Preload::kNone);
  for (const Environment& way : kWays) passes("share_with_plain", way);
}

TEST_CASE("forged, freed and foreign handles are refused") {
  for (const Environment& way : {kWays[0], kWays[1]}) passes("share_wrongly", way);
}

TEST_CASE("blocks are shared again and again") {
  for (const Environment& way : kWays) passes("share_many_times", way);
}
