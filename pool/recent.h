// The small blocks that were freed last, each still in one piece: a request of the same size gets one back without a
// search, a cut or a merge. Of equal sizes the one that waits longest goes first, as its work is the likeliest to be
// done; what nobody wants leaves as one of the oldest of all when a new one needs room. Knows places and sizes only.
// See docs/decisions/0017-small-blocks-stay-whole-for-a-while.md. Owned by best_fit, under the tape's lock.
#pragma once

#include <array>
#include <cstdint>

#include "pool/granule.h"

namespace gpupool {

class Recent {
 public:
  static constexpr unsigned kMost = 768;   // blocks
  static constexpr Granules kSizes = 512;  // their sizes are below this
  static constexpr Granules kNowhere = ~Granules{0};
  static constexpr unsigned kAtOnce = 256;  // places to be emptied when there is no room

  struct Entry {
    Granules place = kNowhere;
    std::uint32_t hint = 0;
  };

  Recent() {
    for (Granules size = 0; size < kSizes; ++size) last_[size] = static_cast<Index>(link_of(size));
    next_.fill(kNone);
  }

  static bool keeps(Granules size) { return size < kSizes; }
  unsigned count() const { return count_; }
  /// Their sum. Cost: O(all).
  std::uint64_t granules() const;

  /// Of that size; null when there is none.
  const Entry* oldest(Granules size) const {
    return keeps(size) && next_[size] != kNone ? &ring_[next_[size]] : nullptr;
  }
  /// There is one.
  void remove_oldest(Granules size) { remove_behind(link_of(size), size); }

  /// Calls visit(place, hint) for the `most` oldest of that size, until it answers true. Did it?
  template <class Visit>
  bool visit(Granules size, unsigned most, Visit&& visit) const {
    if (!keeps(size)) return false;
    for (Index i = next_[size]; i != kNone && most-- != 0; i = next_[link_behind(i)]) {
      if (visit(ring_[i].place, ring_[i].hint)) return true;
    }
    return false;
  }
  /// It is there. Cost: O(older ones of that size).
  void remove(Range block) {
    unsigned link = link_of(block.size());
    while (ring_[next_[link]].place != block.begin) link = link_behind(next_[link]);
    remove_behind(link, block.size());
  }

  /// Is there no room for another one?
  bool full() const { return ring_[here_].place != kNowhere; }
  /// Where the block begins that is `turn` places from the one that is filled next, the oldest: kNowhere when there is
  /// none.
  Granules in_turn(unsigned turn) const { return ring_[(here_ + turn) % kMost].place; }
  /// `hint` is what visit() will say of it.
  void add(Range block, std::uint32_t hint) {
    const Granules size = block.size();
    const Index here = here_;
    ring_[here] = {block.begin, hint};
    next_[link_behind(here)] = kNone;
    next_[last_[size]] = here;
    last_[size] = static_cast<Index>(link_behind(here));
    here_ = static_cast<Index>(here + 1u == kMost ? 0 : here + 1u);
    ++count_;
  }

  /// Is this block among them? Cost: O(blocks of its size).
  bool holds(Range block) const;
  /// Names the first broken invariant, or nullptr.
  const char* validate() const;

 private:
  using Index = std::uint16_t;
  static constexpr Index kNone = kMost;

  // A queue for each size. Its links, each to a place in the ring: first the one to the oldest of that size, then the
  // one behind each place to the next newer of the same size.
  static unsigned link_of(Granules size) { return size; }
  static unsigned link_behind(unsigned place) { return kSizes + place; }
  void remove_behind(unsigned link, Granules size) {
    const Index at = next_[link];
    const Index newer = next_[link_behind(at)];
    const Index last = last_[size];
    next_[link] = newer;
    last_[size] = newer == kNone ? static_cast<Index>(link) : last;
    ring_[at].place = kNowhere;
    --count_;
  }

  std::array<Entry, kMost> ring_{};  // by age, from here_ on around
  std::array<Index, kSizes + kMost> next_;
  std::array<Index, kSizes> last_;  // by size: the link that leads to none
  Index here_ = 0;
  unsigned count_ = 0;
};

}  // namespace gpupool
