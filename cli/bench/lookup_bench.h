// What one dlsym of a name that has nothing to do with CUDA takes. Run with and without the preload: the difference is
// what every program pays for it.
#pragma once

#include "cli/bench/ticks.h"

namespace gpupool::bench {

/// Nanoseconds of one call: the median of rounds of many.
double time_of_lookup(const Clock& clock);

}  // namespace gpupool::bench
