// Device memory that the driver itself serves: requests above pool.direct_above, what the pool could not hold, and
// everything under strategy passthrough. Keeps the size of each, so that live bytes and their peak can be told. One
// mutex, taken beside a driver call of microseconds; never held during one.
#pragma once

#include <atomic>
#include <cstdint>
#include <unordered_map>

#include "live/page.h"
#include "pool/lock_order.h"

namespace gpupool {

class PassThrough {
 public:
  struct Block {
    std::uint64_t bytes = 0;
    std::uint16_t tag = 0;  // of the memory pool that counts it; 0: none
  };
  /// Live bytes and their peak are counted in `shown`.
  explicit PassThrough(PassedBytes& shown) : shown_(shown) {}

  /// False: the host has no memory for it, and the block stays uncounted.
  bool add(std::uint64_t address, const Block& block);
  /// The block at `address` is about to be given back; an empty one when it is not one of these.
  Block remove(std::uint64_t address);
  /// Lock-free: whether there is any block to look for.
  bool empty() const { return blocks_now_.load(std::memory_order_relaxed) == 0; }

  std::uint64_t live() const { return shown_.live.load(std::memory_order_relaxed); }

 private:
  PassedBytes& shown_;
  RankedMutex<LockRank::kPassThrough> mutex_;
  std::unordered_map<std::uint64_t, Block> blocks_;
  std::uint64_t live_ = 0;  // what is shown may miss a change while the page moves
  std::atomic<std::uint64_t> blocks_now_{0};
};

}  // namespace gpupool
