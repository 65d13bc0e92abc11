// The driver as a program without link-time dependencies finds it: one dlopen, and each function by dlsym or by
// cuGetProcAddress. The same binary so runs on the simulated driver and on a real card, with and without the preload.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <string>

#include "tests/differential/watch.h"

namespace differential {

// Types alone: cuCtxAttach and its like are called by old programs.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

struct Driver {
#define FUNCTION(name) NotedAs<decltype(&::name)> name##_;
#define OLDER(name, symbol)
#define SYMBOL(symbol, ...) Noted<CUresult(__VA_ARGS__)> older_##symbol;
#include "tests/differential/driver.def"
#undef FUNCTION
#undef OLDER
#undef SYMBOL
};

#pragma GCC diagnostic pop

/// Which of a function's symbols the program calls.
enum class Spelling : unsigned char {
  kNewest,     // what the header means
  kPerThread,  // what cuGetProcAddress gives a program whose stream 0 is the thread's own
  kOldest,     // rows of OLDER
};

/// Before the first call; false for a name that is none.
bool choose_spelling(const std::string& name);

/// Ends the program when there is no driver.
const Driver& driver();

}  // namespace differential
