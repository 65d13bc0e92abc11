// Best fit over one range of numbers: hands out and takes back [start, start + size), joins neighbours at once. Knows
// nothing of memory. Used for the cards' address ranges and inside driver pools; guarded by the big lock.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>

namespace gpupool::sim {

class RangeAllocator {
 public:
  // Makes a range available; it must not overlap one that is.
  void give(uint64_t start, uint64_t size) {
    auto next = free_.lower_bound(start);
    if (next != free_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == start) {
        start = before->first;
        size += before->second;
        remove(before);
      }
    }
    if (next != free_.end() && start + size == next->first) {
      size += next->second;
      remove(next);
    }
    insert(start, size);
  }

  // The smallest hole that holds `size` at a multiple of `alignment`, lowest address first.
  std::optional<uint64_t> take(uint64_t size, uint64_t alignment) {
    for (auto hole = by_size_.lower_bound({size, 0}); hole != by_size_.end(); ++hole) {
      const auto [hole_size, hole_start] = *hole;
      const uint64_t start = (hole_start + alignment - 1) / alignment * alignment;
      if (start + size > hole_start + hole_size) continue;
      take_exactly(start, size);
      return start;
    }
    return std::nullopt;
  }

  // Takes this very range; it must be free.
  void take_exactly(uint64_t start, uint64_t size) {
    const auto hole = std::prev(free_.upper_bound(start));
    const auto [hole_start, hole_size] = *hole;
    remove(hole);
    if (hole_start < start) insert(hole_start, start - hole_start);
    if (start + size < hole_start + hole_size) insert(start + size, hole_start + hole_size - start - size);
  }

  bool is_free(uint64_t start, uint64_t size) const {
    auto hole = free_.upper_bound(start);
    if (hole == free_.begin()) return false;
    --hole;
    return start + size <= hole->first + hole->second;
  }

 private:
  void insert(uint64_t start, uint64_t size) {
    free_.emplace(start, size);
    by_size_.emplace(size, start);
  }
  void remove(std::map<uint64_t, uint64_t>::iterator hole) {
    by_size_.erase({hole->second, hole->first});
    free_.erase(hole);
  }

  std::map<uint64_t, uint64_t> free_;
  std::set<std::pair<uint64_t, uint64_t>> by_size_;
};

}  // namespace gpupool::sim
