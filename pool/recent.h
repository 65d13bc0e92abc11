// The small blocks that were freed last, each still in one piece: a request of the same size gets one back without a
// search, a cut or a merge. Of equal sizes the one that waits longest goes first, as its work is the likeliest to be
// done; what nobody wants leaves as the oldest of all when a new one needs its place. Knows places and sizes only. See
// docs/decisions/0017-small-blocks-stay-whole-for-a-while.md. Owned by best_fit, under the tape's lock.
#pragma once

#include <array>
#include <cstdint>

#include "pool/granule.h"

namespace gpupool {

class Recent {
 public:
  static constexpr unsigned kMost = 512;   // blocks
  static constexpr Granules kSizes = 512;  // their sizes are below this
  static constexpr Granules kNowhere = ~Granules{0};
  static constexpr unsigned kAhead = 4;

  Recent() { oldest_.fill(kNone); }

  static bool keeps(Granules size) { return size < kSizes; }
  unsigned count() const { return count_; }
  std::uint64_t granules() const { return granules_; }

  /// Where the oldest block of that size begins; kNowhere when there is none.
  Granules oldest(Granules size) const {
    return keeps(size) && oldest_[size] != kNone ? ring_[oldest_[size]].place : kNowhere;
  }
  /// Calls visit(place) for the `most` oldest of that size, until it answers true. Did it?
  template <class Visit>
  bool visit(Granules size, unsigned most, Visit&& visit) const {
    if (!keeps(size)) return false;
    for (Index i = oldest_[size]; i != kNone && most-- != 0; i = ring_[i].newer) {
      if (visit(ring_[i].place)) return true;
    }
    return false;
  }
  /// It is there. Cost: O(older ones of that size).
  void remove(Range block) {
    const Granules size = block.size();
    Index older = kNone;
    Index* link = &oldest_[size];
    while (ring_[*link].place != block.begin) {
      older = *link;
      link = &ring_[older].newer;
    }
    Entry& entry = ring_[*link];
    *link = entry.newer;
    if (entry.newer == kNone) newest_[size] = older;
    entry.size = 0;
    --count_;
    granules_ -= size;
  }

  /// The size whose oldest block has to be removed before one can be added; 0 when there is room.
  Granules in_the_way() const { return ring_[next_].size; }
  /// Where the block begins that will be in the way kAhead additions later; kNowhere when there is none.
  Granules soon_in_the_way() const {
    const Entry& entry = ring_[(next_ + kAhead) % kMost];
    return entry.size == 0 ? kNowhere : entry.place;
  }
  void add(Range block) {
    const Granules size = block.size();
    ring_[next_] = {block.begin, size, kNone};
    if (oldest_[size] == kNone) {
      oldest_[size] = next_;
    } else {
      ring_[newest_[size]].newer = next_;
    }
    newest_[size] = next_;
    next_ = static_cast<Index>((next_ + 1) % kMost);
    ++count_;
    granules_ += size;
  }

  /// Is this block among them? Cost: O(blocks of its size).
  bool holds(Range block) const;
  /// Names the first broken invariant, or nullptr.
  const char* validate() const;

 private:
  using Index = std::uint16_t;
  static constexpr Index kNone = ~Index{0};
  struct Entry {
    Granules place = 0;
    Granules size = 0;    // 0: nothing here
    Index newer = kNone;  // the next newer one of that size
  };

  std::array<Entry, kMost> ring_{};     // by age, from next_ on around
  std::array<Index, kSizes> oldest_;    // by size
  std::array<Index, kSizes> newest_{};  // means something where there is an oldest
  Index next_ = 0;
  unsigned count_ = 0;
  std::uint64_t granules_ = 0;  // of all of them
};

}  // namespace gpupool
