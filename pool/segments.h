// The segments of the tape: blocks, holes and gaps, which cover it without overlap. A hash table by first granule holds
// the segments themselves, so the right neighbour is the segment that begins where one ends, the left one is remembered
// by its beginning, and both cost one look into the table. Buckets are a cache line. An entry that finds no room in its
// own bucket goes to a following one, and those it passed count it: a search ends where nobody was passed over, and
// erasing moves nothing. Which granule lies in which segment is found by a tree of bits over cells of granules. Owned
// by best_fit, under the tape's lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "pool/bit_tree.h"
#include "pool/granule.h"

namespace gpupool {

/// What kind of segment and what is known of it is its owner's business.
struct Segment {
  static constexpr Granules kNowhere = ~Granules{0};
  Granules begin = kNowhere;
  Granules size = 0;
  Granules before = kNowhere;  // where the segment begins that ends where this one begins; kNowhere for the first
  std::uint32_t marks = 0;
  std::uint64_t content = 0;
  Granules end() const { return begin + size; }
  Range range() const { return {begin, begin + size}; }
};

class Segments {
 public:
  /// Places of segments are below `span`. Throws std::bad_alloc.
  explicit Segments(Granules span);

  /// The segment that begins at `begin`; nullptr when none does. Cost: O(1).
  Segment* find(Granules begin) const {
    for (std::size_t at = home(begin);; at = next(at)) {
      Bucket& bucket = buckets_[at];
      Segment* segment = bucket.segments + (bucket.segments[1].begin == begin);
      if (segment->begin == begin) return segment;
      if (bucket.passed == 0) return nullptr;
    }
  }

  /// Where a segment lies, for find() to look at first: a hint, as it may lie elsewhere later.
  std::uint32_t hint_of(const Segment* segment) const {
    return static_cast<std::uint32_t>(offset_of(segment) / kHintUnit);
  }
  Segment* find(Granules begin, std::uint32_t hint) const {
    char* const buckets = reinterpret_cast<char*>(buckets_.get());
    Segment* segment = reinterpret_cast<Segment*>(buckets + std::size_t{hint} * kHintUnit);
    return segment->begin == begin ? segment : find(begin);
  }

  /// The segment with the greatest beginning not above `place`; nullptr when there is none. Cost: O(cell).
  Segment* floor(Granules place) const;

  /// A new segment, of which only `begin` means anything; no other begins there. Pointers to others become invalid.
  Segment* insert(Granules begin) {
    if (count_ * 8 >= size_ * 7) grow();
    cells_.insert(begin / kCell);
    ++count_;
    return place(begin);
  }

  /// Removes a segment; pointers to others stay valid. `left` and `right` are the nearest beginnings of others on
  /// either side, where there are any, else kNowhere.
  void erase(Segment* segment, Granules left, Granules right) {
    const Granules begin = segment->begin;
    if (left / kCell != begin / kCell && right / kCell != begin / kCell) cells_.erase(begin / kCell);
    --count_;
    segment->begin = Segment::kNowhere;
    const Bucket* holder = bucket_of(segment);
    for (std::size_t at = home(begin); &buckets_[at] != holder; at = next(at)) --buckets_[at].passed;
  }

  /// Starts to bring the segment that begins there into the cache.
  void prefetch(Granules begin) const { __builtin_prefetch(&buckets_[home(begin)]); }
  /// The same without the lock, while the table moves or when it is gone: nothing is read.
  class Outline;
  /// `outline` shows this table from now on, and outlives it.
  void show_in(Outline& outline);

  std::size_t count() const { return count_; }
  const char* validate() const;

 private:
  static constexpr Granules kCell = 16;
  static constexpr std::size_t kHintUnit = alignof(Segment);  // bytes: a table may have 32 GiB
  struct alignas(64) Bucket {
    Segment segments[2];
    std::uint32_t passed = 0;  // entries that lie further on because this bucket was full
  };

  static std::size_t home(Granules begin, std::size_t size) { return std::uint64_t{begin * 0x9E3779B1u} * size >> 32; }
  std::size_t home(Granules begin) const { return home(begin, size_); }
  std::size_t next(std::size_t at) const { return at + 1 == size_ ? 0 : at + 1; }
  std::size_t offset_of(const Segment* segment) const {
    return static_cast<std::size_t>(reinterpret_cast<const char*>(segment) -
                                    reinterpret_cast<const char*>(buckets_.get()));
  }
  const Bucket* bucket_of(const Segment* segment) const { return &buckets_[offset_of(segment) / sizeof(Bucket)]; }
  Segment* place(Granules begin) {
    for (std::size_t at = home(begin);; at = next(at)) {
      Bucket& bucket = buckets_[at];
      // Which of the two is free is not foreseen; that one is, is.
      const bool first_taken = bucket.segments[0].begin != Segment::kNowhere;
      const bool second_taken = bucket.segments[1].begin != Segment::kNowhere;
      if (!(first_taken & second_taken)) [[likely]] {
        Segment* segment = bucket.segments + first_taken;
        segment->begin = begin;
        return segment;
      }
      ++bucket.passed;
    }
  }
  void grow();

  std::size_t size_;  // of buckets_; at least nine of sixteen places stay free: the fewer entries lie outside their own
  std::unique_ptr<Bucket[]> buckets_;
  std::size_t count_ = 0;
  BitTree cells_;  // cells in which a segment begins
  Outline* outline_ = nullptr;
};

class Segments::Outline {
 public:
  void prefetch(Granules begin) const {
    const std::size_t offset = home(begin, size_.load(std::memory_order_relaxed)) * sizeof(Bucket);
    __builtin_prefetch(reinterpret_cast<const void*>(buckets_.load(std::memory_order_relaxed) + offset));
  }

 private:
  friend class Segments;
  std::atomic<std::uintptr_t> buckets_{0};  // never followed
  std::atomic<std::size_t> size_{0};
};

inline void Segments::show_in(Outline& outline) {
  outline_ = &outline;
  outline.buckets_.store(reinterpret_cast<std::uintptr_t>(buckets_.get()), std::memory_order_relaxed);
  outline.size_.store(size_, std::memory_order_relaxed);
}

}  // namespace gpupool
