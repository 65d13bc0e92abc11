// Which stream captures are open in this process: one object, told by the hooks, asked by every fence.
// The table has a lock of its own (a leaf: nothing is called under it); any_open() is one atomic load and takes none.
// A capture spreads into other streams and devices by event waits, so what counts is whether any is open at all. That a
// begin does not fall between a fence's question and its driver call is the tape's lock's business (Tape::hold around
// the real begin).
#pragma once

#include <atomic>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "device/context.h"
#include "device/driver_api.h"
#include "pool/lock_order.h"

namespace gpupool {

class Captures {
 public:
  /// Are there open captures? Under a tape's lock, or while begins are held off, the answer holds until the lock is
  /// given up, except that it may turn false.
  bool any_open() const { return open_.load(std::memory_order_acquire) != 0; }

  using Begins = RankedMutex<LockRank::kBegins>;
  /// Held around every real begin.
  std::unique_lock<Begins> hold_to_begin() { return std::unique_lock<Begins>(begins_); }
  /// Held by whoever does what would kill a capture that begins beside it, as waiting for a whole context by
  /// cuCtxSynchronize does. Such threads do not wait for each other.
  std::shared_lock<Begins> hold_off_begins() { return std::shared_lock<Begins>(begins_); }

  /// The stream that a capture begins on. Default streams differ by context, the per-thread one by thread too.
  struct Origin {
    CUcontext context = nullptr;
    CUstream stream = nullptr;
    std::thread::id thread;  // of CU_STREAM_PER_THREAD only
    bool operator==(const Origin& other) const;
  };
  /// Looks up what a handle means in the calling thread; `stream` as given to the spelling of the call that has no
  /// per-thread suffix (a _ptsz hook passes CU_STREAM_PER_THREAD for stream 0).
  static Origin origin_of(const DriverApi& api, CUstream stream);

  /// The real begin succeeded, or is about to be made: told twice is once.
  void began(const Origin& origin);

  /// What an end left behind.
  enum class Left : unsigned char {
    kNoneOpen,    // that was the last: time to make the records that were put off
    kSomeOpen,    // others are open
    kNotTracked,  // it was not known to be open, so nothing has changed
  };
  /// The capture is over: ended, failed to begin, or its stream is being destroyed.
  Left ended(const Origin& origin);
  /// All captures that began in this context are over, because it is going.
  Left context_ended(CUcontext context);

 private:
  template <typename Predicate>
  Left erase(Predicate over);

  Begins begins_;
  RankedMutex<LockRank::kCaptures> mutex_;
  std::vector<Origin> origins_;
  std::atomic<unsigned> open_{0};
};

/// The current context, folded (home_of), whatever is being captured: to ask by the legacy stream, as is done when
/// nothing is, kills the capture of a blocking stream.
StreamHome current_home(const DriverApi& api, Captures& captures);

/// Is this stream part of an open capture, begun on it or carried into it? A driver that will not say counts as yes: it
/// does so for the legacy stream beside a capturing one, on which nothing may be recorded either. Does not disturb the
/// capture.
bool is_capturing(const DriverApi& api, CUstream stream);

}  // namespace gpupool
