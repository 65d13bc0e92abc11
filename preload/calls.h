// How often the program's calls went to the driver rather than to the pool, and with how many bytes: one entry for each
// row of hooks.def. Plain counters that any thread adds to; they only grow, and nobody waits for them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "preload/real.h"

namespace gpupool {

struct CallCount {
  std::atomic<std::uint64_t> calls{0};    // that the driver served
  std::atomic<std::uint64_t> bytes{0};    // asked for by them, where the call says how many
  std::atomic<std::uint64_t> refused{0};  // out of memory, after whatever the pool gave back
  std::atomic<std::uint64_t> rescued{0};  // served on the second try, after the pool gave memory back
};

class Calls {
 public:
  void served(HookRow row, std::uint64_t bytes) {
    add(counts_[row].calls, 1);
    add(counts_[row].bytes, bytes);
  }
  void refused(HookRow row) { add(counts_[row].refused, 1); }
  void rescued(HookRow row) { add(counts_[row].rescued, 1); }
  const CallCount& of(HookRow row) const { return counts_[row]; }

 private:
  static void add(std::atomic<std::uint64_t>& to, std::uint64_t amount) {
    to.fetch_add(amount, std::memory_order_relaxed);
  }
  std::array<CallCount, kHookRows> counts_;
};

}  // namespace gpupool
