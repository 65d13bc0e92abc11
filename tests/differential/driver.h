// The driver as a program without link-time dependencies finds it: one dlopen, one dlsym for each function. The same
// binary so runs on the simulated driver and on a real card, with and without the preload.
#pragma once

#include <cuda.h>

#include "tests/differential/watch.h"

namespace differential {

struct Driver {
#define FUNCTION(name) NotedAs<decltype(&::name)> name##_;
#include "tests/differential/driver.def"
#undef FUNCTION
};

/// Ends the program when there is no driver.
const Driver& driver();

}  // namespace differential
