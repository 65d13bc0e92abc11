// What must go on beside the pool, on each backing and strategy, and natively where it does there.
#include "tests/cases/passes.h"

using namespace gpupool::tests;

namespace {

const Environment kWays[] = {{},
                             {{"GPUPOOL_POOL_STRATEGY", "auto_growth"}},
                             {{"GPUPOOL_POOL_BACKING", "arena"}},
                             {{"GPUPOOL_POOL_REUSE", "sync"}},
                             {{"GPUPOOL_POOL_REUSE", "quiescent"}}};

}  // namespace

TEST_CASE("whatever needs the card's memory gets it from an idle pool", "[case-24][case-33]") {
  passes("yields_to_everybody", {}, Preload::kNone);
  for (const Environment& way : kWays) passes("yields_to_everybody", way);
}

TEST_CASE("work that waits for later work goes on") {
  passes("waiting_work_goes_on", {}, Preload::kNone);
  for (const Environment& way : kWays) passes("waiting_work_goes_on", way);
}

TEST_CASE("two ranks of a pipeline go on, whatever each frees and takes between its sends and receives") {
  passes("pipeline", {}, Preload::kNone);
  for (const Environment& way : {kWays[0], kWays[1], kWays[3], kWays[4]}) passes("pipeline", way);
}

TEST_CASE("work behind an event of another process holds nobody up") {
  passes("event_of_another", {}, Preload::kNone);
  for (Environment way : {kWays[0], kWays[1], kWays[2]}) {
    way["TEST_POOLED"] = "1";
    passes("event_of_another", way);
  }
  passes("event_of_another", kWays[3]);  // there cudaFree waits, as natively
}

TEST_CASE("a capture is unharmed while other threads allocate, grow and trim", "[case-19][case-21]") {
  // Not with pool.reuse=quiescent: nothing is known complete while captures follow each other.
  for (const Environment& way : {kWays[0], kWays[1], kWays[2], kWays[3]}) passes("capture_beside_others", way);
}

TEST_CASE("where memory is short, a request waits for what was freed, whoever freed it and whoever serves") {
  for (const char* name : {"handed_on", "freed_for_the_driver", "freed_for_another_context", "second_stream",
                           "second_stream_after_small_blocks"}) {
    passes(name, {}, Preload::kNone);
    passes(name, {});
    passes(name, {{"GPUPOOL_POOL_STRATEGY", "auto_growth"}});
  }
}

TEST_CASE("what is freed while a capture is open can be had at once, as natively", "[case-19]") {
  for (const char* name : {"freed_and_taken_in_a_capture", "freed_in_a_capture"}) {
    passes(name, {}, Preload::kNone);
    for (const Environment& way : kWays) passes(name, way);
    passes(name, {{"GPUPOOL_SIM_DRIVER_VERSION", "12040"}});
  }
}
