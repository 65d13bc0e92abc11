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

  Recent() {
    oldest_.fill(kNone);
    newest_.fill(kNone);
  }

  static bool keeps(Granules size) { return size < kSizes; }
  unsigned count() const { return count_; }
  std::uint64_t granules() const { return granules_; }

  /// Where the oldest block of that size begins; kNowhere when there is none.
  Granules oldest(Granules size) const {
    return keeps(size) && oldest_[size] != kNone ? ring_[oldest_[size]].place : kNowhere;
  }
  /// Calls visit(place, hint) for the `most` oldest of that size, until it answers true. Did it?
  template <class Visit>
  bool visit(Granules size, unsigned most, Visit&& visit) const {
    if (!keeps(size)) return false;
    for (Index i = oldest_[size]; i != kNone && most-- != 0; i = ring_[i].newer) {
      if (visit(ring_[i].place, ring_[i].hint)) return true;
    }
    return false;
  }
  /// It is there. Cost: O(older ones of that size).
  void remove(Range block) {
    const Granules size = block.size();
    Index older = kNone;
    Index at = oldest_[size];
    while (ring_[at].place != block.begin) {
      older = at;
      at = ring_[at].newer;
    }
    const Index newer = ring_[at].newer;
    Index& link = older == kNone ? oldest_[size] : ring_[older].newer;
    link = newer;
    const Index newest = newest_[size];
    newest_[size] = newer == kNone ? older : newest;
    ring_[at].size = 0;
    --count_;
    granules_ -= size;
  }

  /// Is there no room for another one?
  bool full() const { return ring_[next_].size != 0; }
  /// Where the block begins that is `turn` places from the one that is filled next, the oldest: kNowhere when there is
  /// none.
  Granules in_turn(unsigned turn) const {
    const Entry& entry = ring_[(next_ + turn) % kMost];
    return entry.size == 0 ? kNowhere : entry.place;
  }
  /// `hint` is what visit() will say of it.
  void add(Range block, std::uint32_t hint) {
    const Granules size = block.size();
    ring_[next_] = {block.begin, hint, static_cast<std::uint16_t>(size), kNone};
    ring_[newest_[size]].newer = next_;
    const Index oldest = oldest_[size];
    oldest_[size] = oldest == kNone ? next_ : oldest;
    newest_[size] = next_;
    next_ = static_cast<Index>(next_ + 1u == kMost ? 0 : next_ + 1u);
    ++count_;
    granules_ += size;
  }

  /// Is this block among them? Cost: O(blocks of its size).
  bool holds(Range block) const;
  /// Names the first broken invariant, or nullptr.
  const char* validate() const;

 private:
  using Index = std::uint16_t;
  static constexpr Index kNone = kMost;  // behind the ring lies an entry that is written and never read: no branch
  struct Entry {
    Granules place = 0;
    std::uint32_t hint = 0;
    std::uint16_t size = 0;  // 0: nothing here
    Index newer = kNone;     // the next newer one of that size
  };

  std::array<Entry, kMost + 1> ring_{};  // by age, from next_ on around
  std::array<Index, kSizes> oldest_;     // by size
  std::array<Index, kSizes> newest_;
  Index next_ = 0;
  unsigned count_ = 0;
  std::uint64_t granules_ = 0;  // of all of them
};

}  // namespace gpupool
