// See chunk_cache.h.
#include "cli/models/chunk_cache.h"

namespace gpupool::cli {

BlockNumber ChunkCache::chunk(std::uint32_t list_number, Bytes bytes) {
  if (bytes > card_ - reserved_) release_idle();
  if (bytes > card_ - reserved_) return kNoBlock;
  reserved_ += bytes;
  ++calls_.allocate;
  ModelBlock whole;
  whole.address = next_address_;
  whole.bytes = bytes;
  whole.list = list_number;
  next_address_ += bytes;
  return blocks.add(whole);
}

void ChunkCache::take(std::uint32_t slot, BlockNumber block) {
  blocks[block].taken = true;
  if (slots_.size() <= slot) slots_.resize(slot + std::size_t{1}, kNoBlock);
  slots_[slot] = block;
}

void ChunkCache::give_back(std::uint32_t slot) {
  BlockNumber block = slots_[slot];
  FreeList& free = list(blocks[block].list);
  blocks[block].taken = false;
  const BlockNumber after = blocks[block].after;
  if (after != kNoBlock && !blocks[after].taken) {
    free.erase(after, blocks[after]);
    blocks.absorb_next(block);
  }
  const BlockNumber before = blocks[block].before;
  if (before != kNoBlock && !blocks[before].taken) {
    free.erase(before, blocks[before]);
    blocks.absorb_next(before);
    block = before;
  }
  free.insert(block, blocks[block]);
}

void ChunkCache::release_idle() {
  for (FreeList& free : lists_) {
    for (auto entry = free.begin(); entry != free.end();) {
      const BlockNumber number = (entry++)->second;
      if (blocks[number].before != kNoBlock || blocks[number].after != kNoBlock) continue;
      reserved_ -= blocks[number].bytes;
      ++calls_.free;
      free.erase(number, blocks[number]);
      blocks.remove(number);
    }
  }
}

}  // namespace gpupool::cli
