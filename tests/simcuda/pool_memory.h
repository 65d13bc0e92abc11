// The memory behind one driver pool, as it was measured: one contiguous range of addresses, filled in steps of 32 MiB
// where the request does not fit into what is there already, and emptied by whole free steps. Guarded by the big lock.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "tests/simcuda/arena.h"

namespace gpupool::sim {

class PoolMemory {
 public:
  static constexpr uint64_t kStep = uint64_t{32} << 20;

  // `most` bytes may be held, 0 for what the card has.
  void open(Arena& arena, uint64_t card_bytes, uint64_t most);
  void close();

  // Free bytes of what is held; nothing if no hole is large enough.
  std::optional<uint64_t> take(uint64_t size);
  // The same, taking steps from the card for what is missing.
  std::optional<uint64_t> grow_and_take(uint64_t size);
  void give(uint64_t start, uint64_t size);

  // Empties free steps, the highest first, while at least `keep` bytes stay held.
  void trim(uint64_t keep);

  uint64_t held() const { return steps_.size() * kStep; }
  const std::set<uint64_t>& steps() const { return steps_; }  // their first addresses

 private:
  Arena* arena_ = nullptr;
  uint64_t start_ = 0;  // 0: no addresses yet
  uint64_t size_ = 0;
  uint64_t most_ = 0;
  std::set<uint64_t> steps_;
  RangeAllocator holes_;      // held and free
  RangeAllocator addresses_;  // everything but blocks
};

}  // namespace gpupool::sim
