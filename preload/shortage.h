// The one line that explains a refusal: the verdict, the numbers behind it, and the setting to change. Pure text, for
// the log; docs/out-of-memory.md is what it points to.
#pragma once
#include <cstdint>
#include <string>

namespace gpupool {

/// All bytes, at the moment of the refusal.
struct Shortage {
  int device = 0;
  bool is_capacity = true;  // else it would have fitted: fragmentation
  std::uint64_t request = 0;
  std::uint64_t live = 0;
  std::uint64_t reserved = 0;
  std::uint64_t limit = 0;  // pool.max on this card
  std::uint64_t largest_hole = 0;
  std::uint64_t headroom = 0;
  std::uint64_t others = 0;  // what the card lacks and this process's pools do not hold: other processes, the driver
  std::uint64_t total = 0;
  std::uint64_t overflow = 0;  // pool.overflow_max if pool.overflow is on
};

std::string out_of_memory_text(const Shortage& shortage);

}  // namespace gpupool
