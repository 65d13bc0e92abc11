// Blocks in address order, and the free ones by size: what the allocators that are modelled have in common.
// A block is a number into one array; neighbours are linked, and a chain of neighbours is one piece of memory from the
// driver. A free list is one stream's (and one pool's) own. Owned by a model.
#pragma once
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "config/bytes.h"

namespace gpupool::cli {

using BlockNumber = std::uint32_t;
inline constexpr BlockNumber kNoBlock = ~BlockNumber{0};

struct ModelBlock {
  Bytes address = 0;
  Bytes bytes = 0;
  BlockNumber before = kNoBlock;  // its neighbours
  BlockNumber after = kNoBlock;
  std::uint32_t list = 0;  // the free list it belongs to
  bool taken = false;
  bool mapped = true;
};

/// Free blocks by size, then by address.
class FreeList {
 public:
  using Key = std::pair<std::pair<Bytes, Bytes>, BlockNumber>;
  using Iterator = std::set<Key>::const_iterator;

  void insert(BlockNumber number, const ModelBlock& block) { set_.insert(key(number, block)); }
  void erase(BlockNumber number, const ModelBlock& block) { set_.erase(key(number, block)); }
  /// The smallest that holds `bytes`, of these the lowest.
  Iterator fitting(Bytes bytes) const { return set_.lower_bound({{bytes, 0}, 0}); }
  Iterator begin() const { return set_.begin(); }
  Iterator end() const { return set_.end(); }

 private:
  static Key key(BlockNumber number, const ModelBlock& block) { return {{block.bytes, block.address}, number}; }
  std::set<Key> set_;
};

class Blocks {
 public:
  ModelBlock& operator[](BlockNumber number) { return blocks_[number]; }
  const ModelBlock& operator[](BlockNumber number) const { return blocks_[number]; }

  /// A block with no neighbours.
  BlockNumber add(const ModelBlock& block) {
    if (spare_.empty()) {
      blocks_.push_back(block);
      return static_cast<BlockNumber>(blocks_.size() - 1);
    }
    const BlockNumber number = spare_.back();
    spare_.pop_back();
    blocks_[number] = block;
    return number;
  }

  /// Cuts a block after `bytes`; returns the new one behind it, alike in everything else.
  BlockNumber split(BlockNumber number, Bytes bytes) {
    ModelBlock rest = blocks_[number];
    rest.address += bytes;
    rest.bytes -= bytes;
    rest.before = number;
    const BlockNumber made = add(rest);
    if (rest.after != kNoBlock) blocks_[rest.after].before = made;
    blocks_[number].after = made;
    blocks_[number].bytes = bytes;
    return made;
  }

  /// Joins the block behind `number` to it.
  void absorb_next(BlockNumber number) {
    const BlockNumber gone = blocks_[number].after;
    blocks_[number].bytes += blocks_[gone].bytes;
    blocks_[number].after = blocks_[gone].after;
    if (blocks_[gone].after != kNoBlock) blocks_[blocks_[gone].after].before = number;
    spare_.push_back(gone);
  }

  void remove(BlockNumber number) { spare_.push_back(number); }

 private:
  std::vector<ModelBlock> blocks_;
  std::vector<BlockNumber> spare_;
};

}  // namespace gpupool::cli
