// Time of the slow path, in two parts that are told apart: what the host waits for the GPU, and the rest, which is the
// driver's and ours. Both are objects whose life is the time; used under the tape's lock, one thread's at a time,
// though a wait may give the lock up meanwhile: so each thread keeps its own sum of waits.
#pragma once

#include <chrono>
#include <cstdint>

#include "pool/stats.h"

namespace gpupool {

inline std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

/// Counts one wait on the host, and its time when it is over. The tape's lock is held at its beginning and its end.
class HostWait {
 public:
  explicit HostWait(Stats& stats) : stats_(stats), begin_(now_ns()) { stats.host_waits.add(1); }
  ~HostWait() {
    const std::uint64_t waited = so_far();
    stats_.host_wait_ns.add(waited);
    of_this_thread_ += waited;
  }
  HostWait(const HostWait&) = delete;
  HostWait& operator=(const HostWait&) = delete;

  std::uint64_t so_far() const { return now_ns() - begin_; }
  /// All that the calling thread has waited, in any tape.
  static std::uint64_t of_this_thread() { return of_this_thread_; }

 private:
  static inline __thread std::uint64_t of_this_thread_ = 0;
  Stats& stats_;
  const std::uint64_t begin_;
};

/// Counts its own life as time spent in the pool, less the waits in it.
class SlowPath {
 public:
  explicit SlowPath(Stats& stats) : stats_(stats), begin_(now_ns()), waited_(HostWait::of_this_thread()) {}
  ~SlowPath() { stats_.pool_ns.add(now_ns() - begin_ - (HostWait::of_this_thread() - waited_)); }
  SlowPath(const SlowPath&) = delete;
  SlowPath& operator=(const SlowPath&) = delete;

 private:
  Stats& stats_;
  const std::uint64_t begin_;
  const std::uint64_t waited_;
};

}  // namespace gpupool
