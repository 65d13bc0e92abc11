// Every hooked function is called with and without the preload at least once; together with the other tests here and
// docs/compatibility.md that is checked by scripts/check-compatibility.
#include "tests/catch.h"
#include "tests/preload/core/run.h"

using namespace gpupool::tests;

TEST_CASE("functions that the pool only watches or follows answer as natively") {
  for (const char* name : {"arrays_and_host_memory", "modules_and_limits", "graphs", "pools_by_location",
                           "not_for_blocks", "peers_go", "opened_handles"}) {
    for (const Preload preload : {Preload::kNone, Preload::kFront}) {
      const Outcome outcome = run_case(name, {}, preload);
      INFO(name << (preload == Preload::kNone ? " natively" : "") << "\n" << outcome.out << outcome.err);
      CHECK(outcome.status == 0);
    }
  }
}
