// One torture under the preload, small and with a fixed seed, and what it has to say.
#pragma once

#include "tests/catch.h"
#include "tests/preload/core/run.h"

namespace gpupool::tests {

/// A sanitizer needs descriptors, and rights over its own process.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// Calls may fail; bytes may not be wrong.
inline void expect_right_bytes(const Environment& settings, const std::string& operations = "150") {
  Environment all{
      {"GPUPOOL_POOL_STRATEGY", "auto_growth"}, {"GPUPOOL_STATS_SUMMARY", "off"}, {"GPUPOOL_LOG_LEVEL", "off"}};
  for (const auto& [name, value] : settings) all[name] = value;
  const Outcome outcome = run_program({GPUPOOL_TEST_TORTURE, "--seed", "3", "--threads", "1", "--operations",
                                       operations, "--largest", "100000", "--tolerate"},
                                      all);
  std::string told;
  for (const auto& [name, value] : all) told += name + "=" + value + " ";
  INFO(told << "\n" << outcome.out << outcome.err);
  CHECK(outcome.status == 0);
}

}  // namespace gpupool::tests
