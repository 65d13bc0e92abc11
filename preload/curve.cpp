// See curve.h.
#include "preload/curve.h"

#include <time.h>

namespace gpupool {

std::uint64_t Curve::coarse_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::uint64_t(now.tv_sec) * 1000 + std::uint64_t(now.tv_nsec) / 1'000'000;
}

void Curve::add(CurvePoint point) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;  // another thread is taking this very point
  const std::uint64_t now = coarse_ms();
  std::uint64_t count = shown_.count.load(std::memory_order_relaxed);
  if (count == kMostPoints) {
    for (unsigned i = 0; i < kMostPoints / 2; ++i) shown_.points[i] = shown_.points[2 * i];
    count = kMostPoints / 2;
    interval_ms_ *= 2;
  }
  point.ms = now - start_ms_;
  shown_.points[count] = point;
  shown_.count.store(count + 1, std::memory_order_release);
  next_ms_.store(now + interval_ms_, std::memory_order_relaxed);
}

}  // namespace gpupool
