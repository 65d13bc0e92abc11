// Contexts, streams and threads that end, faults, and old drivers.
#include "tests/cases/passes.h"

using namespace gpupool::tests;

namespace {

const Environment kWays[] = {{},
                             {{"GPUPOOL_POOL_STRATEGY", "auto_growth"}},
                             {{"GPUPOOL_POOL_BACKING", "arena"}},
                             {{"GPUPOOL_POOL_DIRECT_ABOVE", "16MiB"}},
                             {{"GPUPOOL_POOL_REUSE", "sync"}}};

void as_natively(const std::string& name, const Environment& settings = {}) {
  passes(name, settings, Preload::kNone);
  for (Environment way : kWays) {
    way.insert(settings.begin(), settings.end());
    passes(name, way);
  }
}

}  // namespace

TEST_CASE("a context that is detached for the last time goes with its memory") { as_natively("detached_context"); }

TEST_CASE("a primary context that a green one held last gives its memory back") {
  as_natively("green_context_is_the_last");
}

TEST_CASE("streams that go with a released primary context are asked nothing") {
  as_natively("streams_of_a_released_primary");
}

TEST_CASE("a thread frees on its own stream while it ends") { as_natively("late_frees_of_a_thread"); }

TEST_CASE("a context that another thread has destroyed serves nobody", "[case-50]") {
  as_natively("destroyed_under_a_thread");
}

TEST_CASE("after a fault every request and free says so") {
  as_natively("faults_are_told");
  as_natively("faults_are_told", {{"TEST_FIRST", "ordered"}});
}

TEST_CASE("access to a memory pool may be granted before it has memory") { as_natively("access_before_memory"); }

TEST_CASE("a free that has to wait stops no other thread", "[old-driver]") {
  // Natively a free waits on the host, without stopping the others; so it does where contexts have no events.
  const Environment old = {{"GPUPOOL_SIM_DRIVER_VERSION", "12040"}};
  passes("free_does_not_stop_others", {}, Preload::kNone);
  passes("free_does_not_stop_others", {});
  passes("free_does_not_stop_others", old);
  passes("free_does_not_stop_others", {{"GPUPOOL_POOL_REUSE", "sync"}});
}

TEST_CASE("the highest use of a memory pool counts what the driver served too") {
  passes("high_marks", {});
  passes("high_marks", {{"GPUPOOL_POOL_DIRECT_ABOVE", "64MiB"}});
}
