// Best fit: who owns which bytes of the tape. Every byte lies in exactly one segment: a block (the program's), a hole
// (mapped and free), a gap (nothing mapped) or a retained block (freed by the program but still reachable from
// elsewhere, never used again). Holes are merged at once, with their fragments kept. It knows nothing of time: whoever
// takes a part of a hole has first looked at its history. Owned by the tape, under its lock.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "pool/fragments.h"
#include "pool/granule.h"
#include "pool/hole_index.h"
#include "pool/ordered_map.h"

namespace gpupool {

/// What the pool keeps of a block besides its place.
struct Block {
  std::uint16_t slack = 0;  // bytes at its end that were not asked for, below 512
  std::uint16_t tag = 0;
  bool stream_ordered = false;
  bool pinned = false;  // exported: becomes retained when freed
  bool noted = false;   // its owner keeps more about it elsewhere, to be dropped when it is freed
};

class BestFit {
  enum class Kind : std::uint64_t { kGap, kHole, kBlock, kRetained };
  struct Segment {
    Segment() = default;
    Segment(Kind k, std::uint64_t c) : kind(k), content(c & History::kMask) {}
    Kind kind : 2;
    std::uint64_t content : 62;  // hole: its history; block: slack, marks and tag
  };
  using Map = OrderedMap<Granules, Segment>;

 public:
  /// One hole with its history; valid until the next change.
  struct Hole {
    Range range;
    History history;
    Map::Cursor cursor;
  };

  /// One live block; valid until the next change.
  struct Owned {
    Range range;
    Block block;
    Map::Cursor cursor;
  };

  /// The tape's span in granules, and the size of the smallest handle (a power of two): all begins as one gap.
  BestFit(Granules span, Granules handle);

  Range best_fit(Granules size) const { return holes_.best_fit(size); }
  Range following(Range hole) const { return holes_.following(hole); }
  Range largest() const { return holes_.largest(); }
  /// The hole that holds `place`; empty range when it is no hole.
  Hole hole_at(Granules place) const {
    Map::Cursor c = segment_at(place);
    if (map_.value(c).kind != Kind::kHole) return {};
    return hole_of(c, range_of(c));
  }

  /// Calls visit(fragment) for the fragments of `hole` that overlap `part`, until it answers false. True when all were
  /// visited.
  template <class Visit>
  bool visit_history(const Hole& hole, Range part, Visit&& visit) const {
    return fragments_.visit(hole.history, hole.range, part, visit);
  }

  /// Makes `part` of the hole a block; what is left on either side stays a hole with its own history.
  void take(const Hole& hole, Range part, const Block& block);

  /// The live block that covers `place`; empty range when there is none.
  Owned block_at(Granules place) const {
    Map::Cursor c = segment_at(place);
    if (map_.value(c).kind != Kind::kBlock) return {};
    return {range_of(c), block_of(map_.value(c)), c};
  }
  void mark(const Owned& owned, const Block& block) { map_.value(owned.cursor) = segment_of(block); }

  /// Turns a block into (part of) a hole, covered by `record` of `line`; record 0 leaves it clean.
  void free(const Owned& owned, std::uint32_t line, std::uint64_t record);

  /// Memory was mapped there: `range` lies in one gap.
  void gap_to_hole(Range range);
  /// Memory was unmapped there: `range` lies in one hole and all its fragments are complete.
  void hole_to_gap(Range range);

  /// The run of holes and gaps around the first gap that ends behind `place`; empty when there is none. Between blocks,
  /// only such a run can be made to hold a request by mapping more.
  Range span_with_gap_behind(Granules place) const;
  /// The gap at the end of the tape; empty when memory is mapped to its very end.
  Range last_gap() const;
  /// Calls visit(range) for each gap, cut to `part`.
  template <class Visit>
  void visit_gaps(Range part, Visit&& visit) const {
    for (Map::Cursor c = map_.floor(tree_, part.begin); c.valid() && map_.key(c) < part.end; c = map_.next(c)) {
      Range range = range_of(c);
      if (map_.value(c).kind != Kind::kGap || !range.overlaps(part)) continue;
      visit(Range{range.begin < part.begin ? part.begin : range.begin, range.end > part.end ? part.end : range.end});
    }
  }
  /// Calls visit(hole) for each hole that overlaps `part`, until it answers false. True when all were visited.
  template <class Visit>
  bool visit_holes(Range part, Visit&& visit) const {
    for (Map::Cursor c = map_.floor(tree_, part.begin); c.valid() && map_.key(c) < part.end; c = map_.next(c)) {
      Range range = range_of(c);
      if (map_.value(c).kind != Kind::kHole || !range.overlaps(part)) continue;
      if (!visit(hole_of(c, range))) return false;
    }
    return true;
  }

  std::uint64_t hole_count() const { return holes_.holes(); }
  std::uint64_t hole_granules() const { return holes_.granules(); }
  /// Granules of handle-sized, handle-aligned pieces that lie wholly in holes.
  std::uint64_t wholly_free_granules() const { return wholly_free_; }
  std::uint64_t retained_bytes() const { return retained_bytes_; }
  const Fragments& fragments() const { return fragments_; }

  const char* validate() const;

 private:
  static constexpr std::uint32_t kSlackMask = 511;
  static constexpr std::uint32_t kStreamOrdered = 512;
  static constexpr std::uint32_t kPinned = 1024;
  static constexpr std::uint32_t kNoted = 2048;
  static constexpr unsigned kTagShift = 16;

  static Segment gap() { return {Kind::kGap, 0}; }
  static Segment hole(History history) { return {Kind::kHole, history.bits()}; }
  static Segment segment_of(const Block& block) {
    return {Kind::kBlock, std::uint64_t{block.tag} << kTagShift | block.slack |
                              (block.stream_ordered ? kStreamOrdered : 0) | (block.pinned ? kPinned : 0) |
                              (block.noted ? kNoted : 0)};
  }
  static Block block_of(Segment segment) {
    const std::uint64_t content = segment.content;
    return {static_cast<std::uint16_t>(content & kSlackMask), static_cast<std::uint16_t>(content >> kTagShift),
            (content & kStreamOrdered) != 0, (content & kPinned) != 0, (content & kNoted) != 0};
  }
  static History history_of(Segment segment) { return History(segment.content); }

  // The segment that covers a place of the tape: there always is one.
  // Most places are looked up in the leaf where something near was found before; the tree's upper levels are for the
  // rest.
  Map::Cursor segment_at(Granules place) const {
    std::uint32_t& likely = likely_leaf_[place / kNear];
    Map::Cursor c = map_.floor(tree_, place, likely);
    likely = c.leaf;
    return c;
  }

  Range range_of(Map::Cursor c) const {
    Map::Cursor after = map_.next(c);
    return {map_.key(c), after.valid() ? map_.key(after) : span_};
  }
  Hole hole_of(Map::Cursor c, Range range) const { return {range, history_of(map_.value(c)), c}; }
  std::uint64_t aligned_inside(Range range) const {
    std::uint64_t begin = (std::uint64_t{range.begin} + handle_ - 1) & ~std::uint64_t{handle_ - 1};
    std::uint64_t end = range.end & ~std::uint64_t{handle_ - 1};
    return end > begin ? end - begin : 0;
  }
  void list_hole(Range range) {
    holes_.insert(range);
    if (range.size() >= handle_) wholly_free_ += aligned_inside(range);
  }
  void unlist_hole(Range range) {
    holes_.erase(range);
    if (range.size() >= handle_) wholly_free_ -= aligned_inside(range);
  }
  void settle_hole(Map::Cursor c, Range range, History history);

  static constexpr Granules kNear =
      256;  // places that share a likely leaf; fewer would make the table outgrow the cache

  const Granules span_;
  const Granules handle_;
  Map map_;
  Map::Tree tree_;
  std::unique_ptr<std::uint32_t[], decltype(&std::free)>
      likely_leaf_;  // by place; zeros that cost nothing until touched
  HoleIndex holes_;
  Fragments fragments_;
  std::uint64_t wholly_free_ = 0;
  std::uint64_t retained_bytes_ = 0;
};

}  // namespace gpupool
