// Fragments: the parts of holes that somebody's earlier work may still touch. Each says which bytes, on which time line they were freed
// and under which record. Bytes of a hole that no fragment covers are clean. A hole carries one list in address order; lists are cut and
// joined as holes are split and merged, so coalescing never loses a history.
// Owned by best_fit, under the tape's lock.
#pragma once

#include <cstdint>
#include <vector>

#include "pool/granule.h"
#include "pool/node_slab.h"

namespace gpupool {

struct Fragment {
  Range range;
  std::uint32_t line = 0;    // time line it was freed on
  std::uint32_t next = 0;    // following fragment of the same hole
  std::uint64_t record = 0;  // number of the record that covers it; may lie in the future of its line (not made yet)
};

struct FragmentList {
  static constexpr std::uint32_t kNone = (1u << 30) - 1;
  std::uint32_t head = kNone;
  std::uint32_t tail = kNone;
  bool empty() const { return head == kNone; }
};

class Fragments {
 public:
  FragmentList make(Range range, std::uint32_t line, std::uint64_t record);
  /// Joins two lists, `front` lying before `back`; neighbours with the same history become one fragment.
  FragmentList join(FragmentList front, FragmentList back);
  /// Cuts a list at a place: `list` keeps what lies before, the rest is returned. A fragment across the place is cut in two.
  FragmentList cut(FragmentList& list, Granules at);
  void discard(FragmentList list);

  const Fragment& at(std::uint32_t index) const { return slab_[index]; }

  /// Calls visit(fragment) for each that overlaps `range`, until it answers false. True when all were visited.
  template <class Visit>
  bool visit(FragmentList list, Range range, Visit&& visit) const {
    for (std::uint32_t i = list.head; i != FragmentList::kNone; i = slab_[i].next) {
      const Fragment& fragment = slab_[i];
      if (fragment.range.begin >= range.end) break;
      if (fragment.range.end <= range.begin) continue;
      if (!visit(fragment)) return false;
    }
    return true;
  }

  /// How many fragments a line still has; a destroyed stream's line may be used anew at 0.
  std::uint32_t count(std::uint32_t line) const { return line < per_line_.size() ? per_line_[line] : 0; }
  std::size_t in_use() const { return slab_.in_use(); }

 private:
  std::uint32_t take(const Fragment& fragment);
  void give(std::uint32_t index);

  NodeSlab<Fragment> slab_;
  std::vector<std::uint32_t> per_line_;
};

}  // namespace gpupool
