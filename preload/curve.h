// The curve of memory over time: what all pools together held, and what they had done by then, a point about every
// stats.interval while the program makes requests. No thread of its own: every kStride-th request of a thread, and each
// call that the driver serves, looks at a coarse clock, and leaves the time in the page. Bounded: a full curve drops
// every second point and doubles its interval, so that it always spans the whole run.
#pragma once

#include <atomic>
#include <cstdint>

#include "live/page.h"
#include "pool/lock_order.h"

namespace gpupool {

class Curve {
 public:
  static constexpr unsigned kStride = 64;
  static constexpr unsigned kMostPoints = PageCurve::kMostPoints;

  Curve(PageCurve& shown, Counter& seen_ms, std::uint64_t interval_ms)
      : shown_(shown), seen_ms_(seen_ms), interval_ms_(interval_ms) {}

  /// Whether a request should take a point now; cheap enough for every request.
  bool due() {
    static __thread unsigned calls = 0;
    return calls++ % kStride == 0 && due_now();
  }
  /// The same with a look at the clock in any case.
  bool due_now() {
    const std::uint64_t now = coarse_ms();
    seen_ms_.set(now - start_ms_);
    return now >= next_ms_.load(std::memory_order_relaxed);
  }
  /// The time of the point is now, whatever it says.
  void add(CurvePoint point);

 private:
  static std::uint64_t coarse_ms();

  PageCurve& shown_;  // where the points lie
  Counter& seen_ms_;  // the page's clock
  RankedMutex<LockRank::kCurve> mutex_;
  std::uint64_t interval_ms_;
  const std::uint64_t start_ms_ = coarse_ms();
  std::atomic<std::uint64_t> next_ms_{0};
};

}  // namespace gpupool
