// The step that the tests of cases are made of: one case of the program, run and judged.
#pragma once

#include <string>

#include "tests/catch.h"
#include "tests/preload/core/run.h"

namespace gpupool::tests {

/// All checks of the case hold under these settings. What it said.
inline Outcome passes(const std::string& name, const Environment& settings = {}, Preload preload = Preload::kFront) {
  Outcome outcome = run_case(name, settings, preload);
  std::string how;
  for (const auto& [key, value] : settings) how += key + "=" + value + " ";
  INFO(name << " " << how << "\n" << outcome.out << outcome.err);
  CHECK(outcome.status == 0);
  return outcome;
}

}  // namespace gpupool::tests
