// The locks of the core in the one order in which a thread may take them, and the mutexes that check it. With
// GPUPOOL_CHECK_LEVEL 0 (as released) a RankedMutex is a std::mutex, a tape's a lighter one; from 1 on each
// thread keeps count of what it holds, and a lock out of order ends the process with a line that names both. Header
// only, for every layer.
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>
#include <type_traits>

namespace gpupool {

/// From outside in: whoever holds one may take those below it, never the same or those above.
enum class LockRank : std::uint8_t {
  kBegins,       // device/captures.h: no capture begins
  kRegistry,     // preload/registry.h: homes are made, contexts come and go
  kExports,      // preload/ipc_export.h
  kTape,         // pool/tape.h; several only under the registry's, which lets one thread at a time have more than one
  kCaptures,     // device/captures.h
  kRecorder,     // preload/recorder.h: start and end of a trace
  kMemoryPools,  // preload/memory_pools.h
  kPassThrough,  // preload/passthrough.h
  kImports,      // preload/ipc_import.h
  kCurve,        // preload/curve.h
};
constexpr unsigned kLockRanks = static_cast<unsigned>(LockRank::kCurve) + 1;

constexpr const char* name_of(LockRank rank) {
  constexpr const char* kNames[kLockRanks] = {"begins",   "registry",     "exports",      "tape",    "captures",
                                              "recorder", "memory pools", "pass-through", "imports", "curve"};
  return kNames[static_cast<unsigned>(rank)];
}

/// What the calling thread holds.
class LocksHeld {
 public:
  /// Says what is wrong before the process ends; set once by whoever can write.
  static inline void (*report)(const char* wanted, const char* held) = nullptr;

  /// Before waiting for a lock.
  static void check(LockRank wanted) {
    for (unsigned held = static_cast<unsigned>(wanted); held < kLockRanks; ++held) {
      if (held_[held] == 0) continue;
      if (LockRank(held) == wanted && wanted == LockRank::kTape && holds(LockRank::kRegistry)) continue;
      if (report) report(name_of(wanted), name_of(LockRank(held)));
      std::abort();
    }
  }
  static void add(LockRank rank) { ++held_[static_cast<unsigned>(rank)]; }
  static void remove(LockRank rank) { --held_[static_cast<unsigned>(rank)]; }
  static bool holds(LockRank rank) { return held_[static_cast<unsigned>(rank)] != 0; }

 private:
  static inline __thread std::uint16_t held_[kLockRanks] = {};
};

/// For what many threads hold some hundred nanoseconds at a time: being woken takes longer than that, and letting
/// sleepers be woken costs every unlock an atomic exchange. Whoever waits looks again, ever less often, with naps
/// between: meanwhile the one who has it goes on with what lies in its cache.
class NappingMutex {
 public:
  bool try_lock() { return !held_.exchange(true, std::memory_order_acquire); }
  void lock() {
    if (!try_lock()) [[unlikely]]
      wait();
  }
  void unlock() { held_.store(false, std::memory_order_release); }
  /// Does anybody wait for it? Who holds it long, again and again, then naps between, as nobody is woken.
  bool wanted() const { return waiting_.load(std::memory_order_relaxed) != 0; }

 private:
  static constexpr unsigned kLooks = 7;  // after 1, 2, 4 ... 32 pauses, a few microseconds in all, and a nap
  static constexpr timespec kNap{0, 20'000};

  [[gnu::noinline]] void wait() {
    waiting_.fetch_add(1, std::memory_order_relaxed);
    for (unsigned look = 0; held_.load(std::memory_order_relaxed) || !try_lock(); ++look) {
      const unsigned turn = look % kLooks;
      if (turn == kLooks - 1) {
        nanosleep(&kNap, nullptr);
      } else {
        for (unsigned i = 0; i < 1u << turn; ++i) pause();
      }
    }
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
  }

  std::atomic<bool> held_{false};
  std::atomic<unsigned> waiting_{0};
};

/// What a lock of a rank is made of.
template <LockRank rank>
using PlainMutex = std::conditional_t<rank == LockRank::kTape, NappingMutex,
                                      std::conditional_t<rank == LockRank::kBegins, std::shared_mutex, std::mutex>>;

template <LockRank rank>
class CheckedMutex {
 public:
  void lock() {
    LocksHeld::check(rank);
    mutex_.lock();
    LocksHeld::add(rank);
  }
  /// Waits for nobody, so any order will do.
  bool try_lock() {
    if (!mutex_.try_lock()) return false;
    LocksHeld::add(rank);
    return true;
  }
  void unlock() {
    LocksHeld::remove(rank);
    mutex_.unlock();
  }
  bool wanted() const { return mutex_.wanted(); }
  /// Where several may hold it at once.
  void lock_shared() {
    LocksHeld::check(rank);
    mutex_.lock_shared();
    LocksHeld::add(rank);
  }
  void unlock_shared() {
    LocksHeld::remove(rank);
    mutex_.unlock_shared();
  }

 private:
  PlainMutex<rank> mutex_;
};

#if defined(GPUPOOL_CHECK_LEVEL) && GPUPOOL_CHECK_LEVEL >= 1
template <LockRank rank>
using RankedMutex = CheckedMutex<rank>;
#else
template <LockRank rank>
using RankedMutex = PlainMutex<rank>;
#endif

}  // namespace gpupool
