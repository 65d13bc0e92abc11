// A cache of chunks from cuMemAlloc that are cut into blocks: what PyTorch's default allocator and PaddlePaddle's
// share. Free neighbours in a chunk merge, chunks never do. A full card makes it give back every chunk that is wholly
// free, and try once more.
#pragma once
#include <cstdint>
#include <vector>

#include "cli/models/blocks.h"
#include "cli/replay/costs.h"

namespace gpupool::cli {

class ChunkCache {
 public:
  explicit ChunkCache(Bytes card) : card_(card) {}

  Blocks blocks;

  FreeList& list(std::uint32_t number) {
    if (lists_.size() <= number) lists_.resize(number + std::size_t{1});
    return lists_[number];
  }

  /// A new chunk as one block, not in its free list; kNoBlock when the card is full.
  BlockNumber chunk(std::uint32_t list_number, Bytes bytes);
  /// Marks a block as the owner's of `slot`.
  void take(std::uint32_t slot, BlockNumber block);
  void give_back(std::uint32_t slot);

  Bytes reserved() const { return reserved_; }
  const DriverCalls& driver_calls() const { return calls_; }

 private:
  void release_idle();

  const Bytes card_;
  std::vector<FreeList> lists_;
  std::vector<BlockNumber> slots_;
  DriverCalls calls_;
  Bytes reserved_ = 0;
  Bytes next_address_ = 0;
};

}  // namespace gpupool::cli
