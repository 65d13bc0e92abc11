// The host has no memory for the core.
#include "tests/preload/adverse/torture.h"

using namespace gpupool::tests;

namespace {

void refuse(const std::string& which) {
  expect_right_bytes({{"LD_PRELOAD", std::string(GPUPOOL_TEST_FAILING_MALLOC) + ":" + GPUPOOL_TEST_FRONT},
                      {"GPUPOOL_TEST_REFUSE", which}});
}

}  // namespace

TEST_CASE("a single allocation of the core that fails") {
  for (int n = 1; n < 120; n += n < 20 ? 1 : 7) refuse(std::to_string(n));
}

TEST_CASE("no host memory for the core from some moment on") {
  // The first allocation is the C++ library's own store for exceptions, made when the core is loaded.
  for (int n = 2; n < 400; n += n < 20 ? 3 : 23) refuse(std::to_string(n) + "+");
}

TEST_CASE("no host memory while a pool begins, while its tables grow, and when its context ends") {
  for (int n = 190; n < 420; n += 3) {
    const std::string from = std::to_string(n) + "+";
    const Outcome outcome =
        run_case("little_host_memory", {{"LD_PRELOAD", GPUPOOL_TEST_FAILING_MALLOC ":" GPUPOOL_TEST_FRONT},
                                        {"GPUPOOL_TEST_REFUSE", from},
                                        {"GPUPOOL_LOG_LEVEL", "off"},
                                        {"GPUPOOL_STATS_SUMMARY", "off"}});
    INFO(from << "\n" << outcome.out << outcome.err);
    CHECK(outcome.status == 0);
  }
}
