// The benchmark's clock: the processor's time stamp counter where there is one that a program may read (x86), else the
// steady clock. A reading takes about as long as a tenth of what is measured, so its own cost is measured and taken
// off.
#pragma once

#include <chrono>
#include <cstdint>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace gpupool::bench {

/// Read once everything before it is done, loads of the caller's own data included.
inline std::uint64_t ticks() {
#if defined(__x86_64__)
  _mm_lfence();
  return __rdtsc();
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

struct Clock {
  double ns_per_tick = 1;
  double empty_ns = 0;  // median of two readings with nothing between them
};

/// Takes about 50 ms.
Clock calibrate();

}  // namespace gpupool::bench
