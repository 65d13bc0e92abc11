// The time of a record, and of a last look at a context: the processor's counter where it runs evenly and everywhere
// alike, otherwise the monotonic clock. Read on the program's threads; the trace writer's blocks say how the two go
// together (pool/trace_format.h).
#pragma once

#include <time.h>

#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace gpupool {

inline std::uint64_t monotonic_clock_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::uint64_t(now.tv_sec) * 1'000'000'000 + std::uint64_t(now.tv_nsec);
}

class TraceClock {
 public:
  TraceClock() : counter_(counter_is_even()) {}

  std::uint64_t ticks() const { return counter_ ? counter() : monotonic_clock_ns(); }
  /// About a microsecond: a half to two.
  std::uint64_t some_ticks() const { return counter_ ? counter_some_ticks() : 1000; }

  /// Are the two no more than `some` apart, whichever was first? A counter that has begun anew since, as that of a
  /// machine that slept or of another one where the process goes on, is far from all that it has said.
  static bool are_near(std::uint64_t one, std::uint64_t other, std::uint64_t some) {
    return one - other + some <= 2 * some;
  }

 private:
  static std::uint64_t counter() {
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    std::uint64_t value = 0;
    asm volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#else
    return 0;
#endif
  }

  static std::uint64_t counter_some_ticks() {
#if defined(__aarch64__)
    std::uint64_t in_a_second = 0;
    asm volatile("mrs %0, cntfrq_el0" : "=r"(in_a_second));
    return in_a_second / 1'000'000;
#else
    return 2000;  // at one to four a nanosecond
#endif
  }

  static bool counter_is_even() {
#if defined(__x86_64__)
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;  // invariant TSC
#elif defined(__aarch64__)
    return true;
#else
    return false;
#endif
  }

  const bool counter_;
};

}  // namespace gpupool
