// How often the program's calls went to the driver rather than to the pool, and with how many bytes: one entry of the
// live page for each row of hooks.def. Plain counters that any thread adds to; they only grow, and nobody waits for
// them.
#pragma once

#include <atomic>
#include <cstdint>

#include "live/page.h"
#include "preload/real.h"

namespace gpupool {

class Calls {
 public:
  explicit Calls(Page& page) : counts_(page.calls) {}

  void served(HookRow row, std::uint64_t bytes) {
    add(counts_[row].calls, 1);
    add(counts_[row].bytes, bytes);
  }
  void refused(HookRow row) { add(counts_[row].refused, 1); }
  void rescued(HookRow row) { add(counts_[row].rescued, 1); }

 private:
  static_assert(kHookRows <= Page::kMostCalls);
  static void add(std::atomic<std::uint64_t>& to, std::uint64_t amount) {
    to.fetch_add(amount, std::memory_order_relaxed);
  }
  CallCount* const counts_;
};

}  // namespace gpupool
