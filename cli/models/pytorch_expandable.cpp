// PyTorch's caching allocator with expandable_segments:True (same source as pytorch.cpp): each stream and pool has one
// range of addresses that grows by pages, 2 MiB in the small pool and 20 MiB in the large one. Blocks that are not
// mapped are neighbours like any other; a request maps the first place whose free and unmapped neighbours hold it. When
// the card is full, free blocks are unmapped by whole pages.
#include <algorithm>
#include <optional>

#include "cli/models/blocks.h"
#include "cli/models/model.h"
#include "cli/trace/trace.h"

namespace gpupool::cli {
namespace {

constexpr Bytes kRounding = 512;
constexpr Bytes kSmallSize = 1_MiB;
constexpr Bytes kSmallPage = 2_MiB;
constexpr Bytes kLargePage = 20_MiB;

Bytes round_up(Bytes bytes, Bytes unit) { return (bytes + unit - 1) / unit * unit; }

class Expandable final : public Model {
 public:
  explicit Expandable(Bytes card) : card_(card) {}

  bool allocate(std::uint32_t slot, Bytes bytes, std::uint32_t stream) override {
    const Bytes size = round_up(bytes, kRounding);
    Pool& pool = pool_of(stream, size);
    BlockNumber block = find(pool, size);
    if (block == kNoBlock) block = expand(pool, size);
    if (block == kNoBlock) {
      for (auto& each : pools_) {
        if (each) release_cached(*each);
      }
      block = expand(pool, size);
    }
    if (block == kNoBlock) return false;
    if (blocks_[block].bytes > size) {
      const BlockNumber rest = blocks_.split(block, size);
      pool.free.insert(rest, blocks_[rest]);
    }
    blocks_[block].taken = true;
    if (slots_.size() <= slot) slots_.resize(slot + std::size_t{1}, kNoBlock);
    slots_[slot] = block;
    return true;
  }

  void free(std::uint32_t slot, std::uint32_t) override {
    const BlockNumber block = slots_[slot];
    blocks_[block].taken = false;
    settle(*pools_[blocks_[block].list], block);
  }

  Bytes reserved() const override { return reserved_; }
  DriverCalls driver_calls() const override { return calls_; }

 private:
  struct Pool {
    FreeList free;      // mapped
    FreeList unmapped;  // by size, as PyTorch walks them
    Bytes page = 0;
  };

  Pool& pool_of(std::uint32_t stream, Bytes size) {
    const std::uint32_t number = 2 * (stream == kPlain ? 0 : stream) + (size > kSmallSize ? 1 : 0);
    if (pools_.size() <= number) pools_.resize(number + std::size_t{1});
    if (!pools_[number]) {
      pools_[number] = Pool{};
      Pool& pool = *pools_[number];
      pool.page = size > kSmallSize ? kLargePage : kSmallPage;
      ModelBlock range;
      range.address = 0;
      range.bytes = round_up(card_ + card_ / 8, pool.page);
      range.list = number;
      range.mapped = false;
      const BlockNumber made = blocks_.add(range);
      pool.unmapped.insert(made, blocks_[made]);
    }
    return *pools_[number];
  }

  bool is_free(BlockNumber number) const { return number != kNoBlock && !blocks_[number].taken; }
  bool joins(BlockNumber number, bool mapped) const { return is_free(number) && blocks_[number].mapped == mapped; }

  /// What a free block could become if what lies behind it were mapped.
  Bytes expandable(BlockNumber number) const {
    const BlockNumber after = blocks_[number].after;
    return blocks_[number].bytes + (joins(after, false) ? blocks_[after].bytes : 0);
  }

  // A block that could grow counts as large as it could be, so that it is kept for larger requests.
  BlockNumber find(Pool& pool, Bytes size) {
    auto best = pool.free.fitting(size);
    if (best == pool.free.end()) return kNoBlock;
    for (auto next = std::next(best); next != pool.free.end() && expandable(next->second) < expandable(best->second);
         ++next)
      best = next;
    const BlockNumber number = best->second;
    pool.free.erase(number, blocks_[number]);
    return number;
  }

  BlockNumber expand(Pool& pool, Bytes size) {
    for (const FreeList::Key& entry : pool.unmapped) {
      BlockNumber first = entry.second;
      if (joins(blocks_[first].before, true)) first = blocks_[first].before;
      Bytes room = 0;
      for (BlockNumber at = first; is_free(at) && room < size; at = blocks_[at].after) room += blocks_[at].bytes;
      if (room >= size) return map_from(pool, first, size);
    }
    return kNoBlock;
  }

  /// Maps from `first` on until that one free block holds `size`; it leaves the free list. kNoBlock: the card is full.
  BlockNumber map_from(Pool& pool, BlockNumber first, Bytes size) {
    if (!blocks_[first].mapped) {
      const Bytes wanted = std::min(size, blocks_[first].bytes);
      if ((first = map(pool, first, wanted)) == kNoBlock) return kNoBlock;
    }
    while (blocks_[first].bytes < size) {
      const BlockNumber next = blocks_[first].after;
      const Bytes missing = std::min(size - blocks_[first].bytes, blocks_[next].bytes);
      if ((first = map(pool, next, missing)) == kNoBlock) return kNoBlock;
    }
    pool.free.erase(first, blocks_[first]);
    return first;
  }

  /// Maps whole pages at the front of an unmapped block; returns the free block that they are now part of.
  BlockNumber map(Pool& pool, BlockNumber number, Bytes bytes) {
    const Bytes pages = round_up(bytes, pool.page);
    if (pages > card_ - reserved_) return kNoBlock;
    pool.unmapped.erase(number, blocks_[number]);
    if (blocks_[number].bytes > pages) {
      const BlockNumber rest = blocks_.split(number, pages);
      pool.unmapped.insert(rest, blocks_[rest]);
    }
    blocks_[number].mapped = true;
    reserved_ += pages;
    calls_.create += pages / pool.page;
    calls_.map += pages / pool.page;
    return settle(pool, number);
  }

  /// A free block joins its free neighbours of the same kind and goes to its list.
  BlockNumber settle(Pool& pool, BlockNumber number) {
    FreeList& list = blocks_[number].mapped ? pool.free : pool.unmapped;
    const BlockNumber after = blocks_[number].after;
    if (joins(after, blocks_[number].mapped)) {
      list.erase(after, blocks_[after]);
      blocks_.absorb_next(number);
    }
    const BlockNumber before = blocks_[number].before;
    if (joins(before, blocks_[number].mapped)) {
      list.erase(before, blocks_[before]);
      blocks_.absorb_next(before);
      number = before;
    }
    list.insert(number, blocks_[number]);
    return number;
  }

  void release_cached(Pool& pool) {
    std::vector<BlockNumber> all;
    for (const FreeList::Key& entry : pool.free) all.push_back(entry.second);
    for (BlockNumber number : all) {
      const ModelBlock block = blocks_[number];
      const Bytes begin = round_up(block.address, pool.page);
      const Bytes end = (block.address + block.bytes) / pool.page * pool.page;
      if (end <= begin) continue;
      pool.free.erase(number, blocks_[number]);
      if (block.address + block.bytes > end) {
        const BlockNumber rest = blocks_.split(number, end - block.address);
        pool.free.insert(rest, blocks_[rest]);
      }
      if (begin > block.address) {
        const BlockNumber middle = blocks_.split(number, begin - block.address);
        pool.free.insert(number, blocks_[number]);
        number = middle;
      }
      blocks_[number].mapped = false;
      reserved_ -= end - begin;
      calls_.unmap += (end - begin) / pool.page;
      calls_.release += (end - begin) / pool.page;
      settle(pool, number);
    }
  }

  const Bytes card_;
  Blocks blocks_;
  std::vector<std::optional<Pool>> pools_;
  std::vector<BlockNumber> slots_;
  DriverCalls calls_;
  Bytes reserved_ = 0;
};

}  // namespace

std::unique_ptr<Model> make_pytorch_expandable(Bytes card, Bytes) { return std::make_unique<Expandable>(card); }

}  // namespace gpupool::cli
