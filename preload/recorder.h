// The recorder of trace.path: turns what the serve path did into records, and notices from a pool's counters what else
// has happened. Off, each of its calls is one branch. On, a call costs a clock, a few loads and a place in a ring;
// thread, file and ring come to be at the first record. One for each Process; all of it for any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "preload/real.h"

#include "pool/lock_order.h"
#include "pool/tape_types.h"
#include "pool/trace_format.h"
#include "preload/registry.h"

namespace gpupool {

class TraceWriter;

class Recorder {
 public:
  /// An empty path records nothing. `registry` tells the pools' numbers; of the same Process.
  Recorder(const std::string& path, const Registry& registry) : on_(!path.empty()), registry_(registry) {}

  /// A request that a pool has served.
  void served(HookRow row, const Home& home, const Request& request, std::uint64_t address) {
    if (on()) [[unlikely]]
      put_served(row, home, request, address);
  }
  /// A request that the driver has served, on a stream or on kTraceNoStream.
  void passed(HookRow row, std::uint64_t bytes, std::uint64_t address, std::uint64_t stream) {
    if (on()) [[unlikely]]
      put_passed(row, bytes, address, stream);
  }
  /// A block of a pool is about to be given back.
  void freeing(HookRow row, const Home& home, std::uint64_t address, Line line) {
    if (on()) [[unlikely]]
      put_freeing(row, home, address, line);
  }
  /// Memory of the driver is about to be given back.
  void passing_free(HookRow row, std::uint64_t address) {
    if (on()) [[unlikely]]
      put_passing_free(row, address);
  }
  /// What became of a call that the driver serves; `result` as the program sees it.
  void watched(HookRow row, std::uint64_t bytes, CUresult result) {
    if (on()) [[unlikely]]
      put_watched(row, bytes, result);
  }
  /// The pool had nothing for a request.
  void pool_full(HookRow row, const Home& home, const Request& request, Verdict verdict) {
    if (on()) [[unlikely]]
      put_pool_full(row, home, request, verdict);
  }
  /// Memory was given back outside of a request.
  void changed(const Home& home) {
    if (on()) [[unlikely]]
      put_changed(home);
  }
  /// The pool has ended with its context.
  void retired(const Home& home) {
    if (on()) [[unlikely]]
      put_retired(home);
  }

  /// The process ends: writes what there is. Nothing is recorded afterwards.
  void finish();
  /// In the child of a fork, before it leaves the parent's Process behind.
  void disown();

 private:
  // What a pool's counters said when they were last looked at.
  struct LastSeen {
    std::atomic<std::uint64_t> rare{0};  // what follows, summed up
    std::atomic<std::uint64_t> reserved{0};
    std::atomic<std::uint64_t> peak{0};  // of reserved
    std::atomic<std::uint64_t> fences{0};
    std::atomic<std::uint64_t> growth_bytes{0};
    std::atomic<std::uint64_t> growth_steps{0};
    std::atomic<std::uint64_t> migrated_bytes{0};
    std::atomic<std::uint64_t> migrations{0};
    std::atomic<std::uint64_t> trimmed_bytes{0};
    std::atomic<std::uint64_t> trims{0};
  };
  enum class Mark : std::uint8_t;

  bool on() const { return on_.load(std::memory_order_relaxed); }
  void put_served(HookRow row, const Home& home, const Request& request, std::uint64_t address);
  void put_passed(HookRow row, std::uint64_t bytes, std::uint64_t address, std::uint64_t stream);
  void put_freeing(HookRow row, const Home& home, std::uint64_t address, Line line);
  void put_passing_free(HookRow row, std::uint64_t address);
  void put_watched(HookRow row, std::uint64_t bytes, CUresult result);
  void put_pool_full(HookRow row, const Home& home, const Request& request, Verdict verdict);
  void put_changed(const Home& home);
  void put_retired(const Home& home);

  void push(TraceRecord record);
  void push_mark(Mark mark, HookRow row, unsigned pool, std::uint64_t bytes, std::uint64_t count,
                 std::uint64_t reserved);
  void note_changes(HookRow row, const Home& home, unsigned pool);
  std::uint64_t reserved_of(const Home& home) const;
  TraceWriter* start();

  std::atomic<bool> on_;
  const Registry& registry_;
  std::atomic<TraceWriter*> writer_{nullptr};  // never deleted: another thread may be pushing
  RankedMutex<LockRank::kRecorder> mutex_;     //  of start() and finish()
  std::array<LastSeen, Registry::kMostHomes> last_seen_{};
};

}  // namespace gpupool
