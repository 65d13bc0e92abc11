// pool.guard=on: an overrun of one byte is found and named, and a program without one hears nothing.
#include "tests/catch.h"
#include "tests/preload/core/run.h"

using namespace gpupool::tests;

namespace {

Outcome guarded(const std::string& name, Environment settings = {}) {
  settings["GPUPOOL_POOL_GUARD"] = "on";
  settings["GPUPOOL_LOG_LEVEL"] = "info";
  Outcome outcome = run_case(name, settings);
  INFO(name << ": " << outcome.out << outcome.err);
  CHECK(outcome.status == 0);
  return outcome;
}

bool says(const Outcome& outcome, const std::string& part) { return outcome.err.find(part) != std::string::npos; }

const Environment kOrders[] = {{},
                               {{"GPUPOOL_SIM_SCHEDULE", "random"}, {"GPUPOOL_SIM_SEED", "3"}},
                               {{"GPUPOOL_POOL_REUSE", "sync"}},
                               {{"GPUPOOL_POOL_STRATEGY", "auto_growth"}}};

}  // namespace

TEST_CASE("one byte behind a plain block is found, with block and request") {
  for (const Environment& order : kOrders) {
    const Outcome outcome = guarded("guard_plain", order);
    INFO(outcome.err);
    CHECK(says(outcome, "overrun: 1 bytes behind the end of block 0x"));
    CHECK(says(outcome,
               "at offsets 1000 to 1000 of its 1000 bytes; request 2 of the pool, by cuMemAlloc_v2; seen at its "
               "free by cuMemFree_v2"));
    CHECK(says(outcome, "1 overrun, 0 not looked at"));
  }
}

TEST_CASE("a block that changes streams is checked where it is freed") {
  for (const Environment& order : kOrders) {
    const Outcome outcome = guarded("guard_async", order);
    INFO(outcome.err);
    CHECK(says(outcome, "overrun: 3 bytes behind the end of block 0x"));
    CHECK(says(outcome,
               "at offsets 4196 to 4198 of its 4096 bytes; request 2 of the pool, by cuMemAllocAsync; seen at its "
               "free by cuMemFreeAsync"));
    CHECK(says(outcome, "1 overrun, 0 not looked at"));
  }
}

TEST_CASE("right programs run as before, and are told of nothing") {
  for (const Environment& order : kOrders) {
    for (const char* name : {"guard_poison", "plain", "pitch", "range", "attributes", "threads", "async",
                             "created_pools", "capture", "per_thread_streams", "order_plain", "order_async"}) {
      const Outcome outcome = guarded(name, order);
      CHECK_FALSE(says(outcome, "overrun:"));
    }
  }
}
