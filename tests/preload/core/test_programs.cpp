// Every case of the test program under the preload, for each way to serve memory. What the cases check holds natively
// too.
#include "tests/catch.h"
#include "tests/preload/core/run.h"

using namespace gpupool::tests;

namespace {

const char* const kCases[] = {"plain",
                              "codes",
                              "pitch",
                              "range",
                              "attributes",
                              "getinfo",
                              "threads",
                              "out_of_memory",
                              "async",
                              "async_reuse",
                              "pool_attributes",
                              "created_pools",
                              "exportable_pool",
                              "capture",
                              "per_thread_streams",
                              "reset",
                              "free_after_reset",
                              "release",
                              "second_context",
                              "fork_before",
                              "fork_after",
                              "late_free",
                              "two_devices",
                              "user_vmm",
                              "order_plain",
                              "order_late_context",
                              "order_stream_of_gone_context",
                              "order_async",
                              "order_destroyed_stream",
                              "frees_beside_captures",
                              "lost_context",
                              "fork_among_threads",
                              "nothing"};

void passes(const std::string& name, const Environment& settings) {
  const Outcome outcome = run_case(name, settings);
  INFO(name << "\n" << outcome.out << outcome.err);
  CHECK(outcome.status == 0);
  CHECK(outcome.out.empty());
}

}  // namespace

TEST_CASE("every case passes with the pool reserved up front") {
  for (const char* name : kCases) passes(name, {});
}

TEST_CASE("every case passes with a growing pool") {
  for (const char* name : kCases) passes(name, {{"GPUPOOL_POOL_STRATEGY", "auto_growth"}});
}

TEST_CASE("every case passes while frees wait on the host, and with only completed memory reused") {
  for (const char* name : kCases) passes(name, {{"GPUPOOL_POOL_REUSE", "sync"}});
  for (const char* name : {"plain", "threads", "async", "order_plain", "order_async", "order_destroyed_stream"}) {
    passes(name, {{"GPUPOOL_POOL_REUSE", "quiescent"}});
  }
}

// cuCtxSynchronize kills every open capture, those that other threads begin at this moment too; so a free waits for a
// record.
TEST_CASE("a free that waits does so without cuCtxSynchronize, where the driver has context events") {
  passes("free_waits", {{"GPUPOOL_POOL_REUSE", "sync"}, {"GPUPOOL_SIM_FAULT", "cuCtxSynchronize:*=999"}});
}

TEST_CASE("on a driver without context events frees wait, and captures of other threads live") {
  for (const char* name : {"free_waits", "frees_beside_captures"})
    passes(name, {{"GPUPOOL_SIM_DRIVER_VERSION", "12040"}});
}

TEST_CASE("every case passes on slabs of cuMemAlloc") {
  for (const char* name : kCases) passes(name, {{"GPUPOOL_POOL_BACKING", "arena"}});
}

TEST_CASE("pools count what the driver serves to many threads in the tape's place") {
  for (const char* backing : {"auto", "arena"})
    passes("driver_served_threads", {{"GPUPOOL_POOL_DIRECT_ABOVE", "16KiB"}, {"GPUPOOL_POOL_BACKING", backing}});
}

TEST_CASE("every case passes under another order of execution") {
  for (const char* name : kCases) passes(name, {{"GPUPOOL_SIM_SCHEDULE", "random"}, {"GPUPOOL_SIM_SEED", "7"}});
}
