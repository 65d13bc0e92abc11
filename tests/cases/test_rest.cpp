// Every hooked function is called with and without the preload at least once; together with the other tests here and
// docs/compatibility.md that is checked by scripts/check-compatibility.
#include "tests/cases/passes.h"

using namespace gpupool::tests;

TEST_CASE("functions that the pool only watches or follows answer as natively") {
  for (const char* name :
       {"arrays_and_host_memory", "modules_and_limits", "graphs", "pools_by_location", "not_for_blocks", "peers_go",
        "opened_handles", "registration_caches", "access_withdrawn", "used_after_a_plain_free"}) {
    for (const Preload preload : {Preload::kNone, Preload::kFront}) {
      const Outcome outcome = run_case(name, {}, preload);
      INFO(name << (preload == Preload::kNone ? " natively" : "") << "\n" << outcome.out << outcome.err);
      CHECK(outcome.status == 0);
    }
  }
}

TEST_CASE("SYNC_MEMOPS is refused for mapped memory, as the driver does, with a hint, once; slabs have it") {
  const Outcome mapped = passes("sync_memops");
  const std::size_t hint = mapped.err.find("pool.backing=arena has it");
  CHECK(hint != std::string::npos);
  CHECK(mapped.err.find("pool.backing=arena has it", hint + 1) == std::string::npos);
  const Outcome slabs = passes("sync_memops", {{"GPUPOOL_POOL_BACKING", "arena"}, {"TEST_SLABS", "1"}});
  CHECK(slabs.err.find("SYNC_MEMOPS") == std::string::npos);
}

TEST_CASE("a graph that finds no memory at its launch or upload gets what the pool has", "[case-33]") {
  for (const char* strategy : {"best_fit", "auto_growth"}) {
    const Outcome outcome =
        run_case("graph_needs_room",
                 {{"GPUPOOL_SIM_FAULT", "cuGraphUpload:1=2;cuGraphLaunch:1-2=2"}, {"GPUPOOL_POOL_STRATEGY", strategy}},
                 Preload::kFront);
    INFO(strategy << "\n" << outcome.out << outcome.err);
    CHECK(outcome.status == 0);
  }
}
