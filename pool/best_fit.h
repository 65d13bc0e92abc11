// Best fit: who owns which bytes of the tape. Every byte lies in exactly one segment: a block (the program's), a hole
// (mapped and free), a gap (nothing mapped) or a retained block (freed by the program but still reachable from
// elsewhere, and in nobody's hands until that ends). Holes are merged at once, with their fragments kept. It knows
// nothing of time: whoever takes a part of a hole has first looked at its history. Owned by the tape, under its lock.
#pragma once

#include <cstdint>

#include "pool/fragments.h"
#include "pool/granule.h"
#include "pool/hole_index.h"
#include "pool/ordered_map.h"
#include "pool/recent.h"
#include "pool/segments.h"
#include "pool/tape_types.h"

namespace gpupool {

/// What the pool keeps of a block besides its place.
struct Block {
  std::uint32_t slack = 0;  // bytes at its end that were not asked for, below 512
  std::uint32_t tag = 0;    // 16 bits
  bool stream_ordered = false;
  Sharing sharing = Sharing::kNone;  // else it becomes retained when freed
  std::uint64_t buffer_id = 0;       // 0 until somebody has asked for it
};

class BestFit {
 public:
  /// One hole with its history; valid until the next change.
  struct Hole {
    Range range;
    History history;
    Segment* segment = nullptr;
  };

  /// One live block; valid until the next change.
  struct Owned {
    Range range;
    Block block;
    Segment* segment = nullptr;
  };

  /// The tape's span in granules, and the size of the smallest handle (a power of two): all begins as one gap.
  BestFit(Granules span, Granules handle);

  /// For prefetching a block's segment without the lock.
  void show_in(Segments::Outline& outline) { segments_.show_in(outline); }

  Range best_fit(Granules size) const { return holes_.best_fit(size); }
  Range following(Range hole) const { return holes_.following(hole); }
  Range largest() const { return holes_.largest(); }
  /// The hole that begins at `place`, as those do that best_fit() and its like name.
  Hole hole_from(Granules place) const { return hole_of(segments_.find(place)); }
  /// The hole that holds `place`; empty range when it is no hole.
  Hole hole_at(Granules place) const {
    Segment* segment = segments_.floor(place);
    return kind(*segment) == Kind::kHole ? hole_of(segment) : Hole{};
  }

  /// Calls visit(hole) for small blocks of exactly that size that were freed lately and still lie apart from the holes,
  /// for take() to hand out whole: the `most` that wait longest, until it answers true. Did it?
  template <class Visit>
  bool visit_recent(Granules size, unsigned most, Visit&& visit) const {
    return recent_.visit(
        size, most, [&](Granules place, std::uint32_t hint) { return visit(hole_of(segments_.find(place, hint))); });
  }
  bool has_recent(Granules size) const { return recent_.oldest(size) != nullptr; }
  /// The one that waits longest; no segment when there is none. Handed out whole by the second.
  Hole oldest_recent(Granules size) const {
    const Recent::Entry* oldest = recent_.oldest(size);
    if (oldest == nullptr) return {};
    Segment* segment = segments_.find(oldest->place, oldest->hint);
    return {{oldest->place, oldest->place + size}, history_of(*segment), segment};
  }
  void take_oldest_recent(const Hole& oldest, Granules size, const Block& block) {
    recent_.remove_oldest(size);
    fragments_.discard(oldest.history);
    become_block(*oldest.segment, block);
  }
  /// Makes holes of all of them, joined with their neighbours: before a choice that should see all that is free.
  void settle_recent();

  /// Calls visit(fragment) for the fragments of `hole` that overlap `part`, until it answers false. True when all were
  /// visited.
  template <class Visit>
  bool visit_history(const Hole& hole, Range part, Visit&& visit) const {
    return fragments_.visit(hole.history, hole.range, part, visit);
  }

  /// Was all of `part` of the hole, where it is not clean, freed on `line`? False when it is clean.
  bool freed_on(const Hole& hole, Range part, std::uint32_t line) const {
    bool all = false;
    visit_history(hole, part, [&](const Fragment& fragment) { return all = fragment.line == line; });
    return all;
  }

  /// Makes `part` of the hole a block; what is left on either side stays a hole with its own history.
  void take(const Hole& hole, Range part, const Block& block) {
    if (kind(*hole.segment) != Kind::kRecent) return take_part(hole.segment, part.begin, part.size(), block);
    recent_.remove(part);
    fragments_.discard(hole.history);
    become_block(*hole.segment, block);
  }

  /// The live block that begins at `place`; empty range when none does.
  Owned block_from(Granules place) const { return owned(segments_.find(place)); }
  /// The live block that covers `place`; empty range when none does.
  Owned block_at(Granules place) const { return owned(segments_.floor(place)); }
  void mark(const Owned& owned, const Block& block) { become_block(*owned.segment, block); }

  /// What became of a block that was freed, and which of the figures below have changed with it.
  enum class Became : std::uint8_t {
    kRecent,  // only the pieces that are free, and their sum
    kOther,   // any
  };
  /// Frees a block, covered by `record` of `line`; record 0 leaves it clean. It becomes (part of) a hole, a small one
  /// only after some time.
  Became free(const Owned& owned, std::uint32_t line, std::uint64_t record) {
    const History history = record == 0 ? History{} : fragments_.make(owned.range, line, record);
    if (owned.block.sharing != Sharing::kNone || !Recent::keeps(owned.range.size())) [[unlikely]] {
      free_at_once(owned.segment, owned.block.sharing, history);
      return Became::kOther;
    }
    const bool settles = recent_.full();
    if (settles) [[unlikely]]
      settle_oldest();
    become(*owned.segment, Kind::kRecent, history.bits());
    recent_.add(owned.range, segments_.hint_of(owned.segment));
    return settles ? Became::kOther : Became::kRecent;
  }

  /// Memory was mapped there: `range` lies in one gap.
  void gap_to_hole(Range range);
  /// Memory was unmapped there: `range` is of holes and retained blocks, and all their fragments are complete.
  void free_to_gap(Range range);

  /// Marks the live blocks that have a part of `range`. False: there are none.
  bool share(Range range, Sharing sharing);
  /// The block at `place`, live or retained, was Sharing::kAnnounced and is kEnded now. False: it was not.
  bool release(Granules place);
  /// Retained blocks of that kind become holes. True when there were any.
  bool regain_ended();
  /// The first retained block that begins at or behind `place`; empty range when there is none.
  Range retained_from(Granules place) const;
  /// Is all of `range` hole, or retained for what `leaves(sharing)` agrees to?
  template <class Leaves>
  bool may_leave(Range range, Leaves leaves) const {
    for (const Segment* s = segments_.floor(range.begin); s->begin < range.end; s = behind(s)) {
      if (kind(*s) != Kind::kHole && !(kind(*s) == Kind::kRetained && leaves(sharing(*s)))) return false;
    }
    return true;
  }

  /// The run of holes and gaps around the first gap that ends behind `place`; empty when there is none. Between blocks,
  /// only such a run can be made to hold a request by mapping more.
  Range span_with_gap_behind(Granules place) const;
  /// The gap at the end of the tape; empty when memory is mapped to its very end.
  Range last_gap() const;
  /// Calls visit(range) for each gap, cut to `part`.
  template <class Visit>
  void visit_gaps(Range part, Visit&& visit) const {
    for (Places::Cursor c = gap_behind(part.begin); c.valid() && gaps_.key(c) < part.end; c = gaps_.next(c)) {
      const Range range = segments_.find(gaps_.key(c))->range();
      visit(Range{range.begin < part.begin ? part.begin : range.begin, range.end > part.end ? part.end : range.end});
    }
  }
  /// Calls visit(hole) for each hole, and each retained block, that overlaps `part`, until it answers false. True when
  /// all were visited.
  template <class Visit>
  bool visit_free(Range part, Visit&& visit) const {
    for (Segment* s = segments_.floor(part.begin); s->begin < part.end && s->begin != span_; s = behind(s)) {
      const bool free = kind(*s) == Kind::kHole || kind(*s) == Kind::kRetained;
      if (free && s->end() > part.begin && !visit(hole_of(s))) return false;
    }
    return true;
  }

  /// Calls visit(owned) for each live block, by place. Where a change was left in the middle, for lack of host memory,
  /// the blocks behind it may be missed.
  template <class Visit>
  void visit_blocks(Visit&& visit) const {
    for (Segment* s = segments_.floor(0); s != nullptr && s->begin != span_; s = behind(s)) {
      if (kind(*s) == Kind::kBlock) visit(owned(s));
    }
  }

  /// Pieces that are free, those that were freed lately among them, and their sum.
  std::uint64_t hole_count() const { return holes_.holes() + recent_.count(); }
  std::uint64_t hole_granules() const { return holes_.granules() + recent_.granules(); }
  /// Granules of handle-sized, handle-aligned pieces that lie wholly in holes.
  std::uint64_t wholly_free_granules() const { return wholly_free_; }
  std::uint64_t retained_bytes() const { return retained_bytes_; }
  const Fragments& fragments() const { return fragments_; }

  const char* validate() const;

 private:
  // The segment at the very end is no memory: it ends the search for neighbours.
  // A recent one was freed but not joined with its neighbours yet.
  enum class Kind : std::uint32_t { kGap, kHole, kBlock, kRetained, kRecent, kEnd };
  using Places = OrderedMap<Granules>;

  // A segment's marks: its kind in the lowest bits, then what there is to a block. Its content: a block's buffer id, or
  // the history of what is free.
  static constexpr std::uint32_t kKindMask = 7;
  static constexpr std::uint32_t kStreamOrdered = 8;
  static constexpr unsigned kSharingShift = 4;
  static constexpr std::uint32_t kSharingMask = 7;
  static constexpr unsigned kSlackShift = 7;
  static constexpr std::uint32_t kSlackMask = 511;
  static constexpr unsigned kTagShift = 16;

  static Kind kind(const Segment& segment) { return Kind{segment.marks & kKindMask}; }
  static void become(Segment& segment, Kind kind, std::uint64_t content = 0) {
    segment.marks = static_cast<std::uint32_t>(kind);
    segment.content = content;
  }
  static void become_block(Segment& segment, const Block& block) {
    become(segment, Kind::kBlock, block.buffer_id);
    segment.marks |= block.tag << kTagShift | block.slack << kSlackShift | (block.stream_ordered ? kStreamOrdered : 0) |
                     bits_of(block.sharing);
  }
  static std::uint32_t bits_of(Sharing sharing) { return static_cast<std::uint32_t>(sharing) << kSharingShift; }
  static Sharing sharing(const Segment& segment) {
    return static_cast<Sharing>(segment.marks >> kSharingShift & kSharingMask);
  }
  static Owned owned(Segment* segment) {
    if (segment == nullptr || kind(*segment) != Kind::kBlock) return {};
    const std::uint32_t marks = segment->marks;
    return {segment->range(),
            {marks >> kSlackShift & kSlackMask, marks >> kTagShift, (marks & kStreamOrdered) != 0, sharing(*segment),
             segment->content},
            segment};
  }
  static History history_of(const Segment& segment) { return History(segment.content); }
  static Hole hole_of(Segment* segment) { return {segment->range(), history_of(*segment), segment}; }

  Segment* behind(const Segment* segment) const { return segments_.find(segment->end()); }
  Segment* before(const Segment* segment) const {
    return segment->begin == 0 ? nullptr : segments_.find(segment->before);
  }
  Segment* insert(Range range, Granules before);
  Places::Cursor gap_behind(Granules place) const;

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
  void become_hole(Segment* segment, History history);
  void become_gap(Segment* segment);
  void take_part(Segment* hole, Granules begin, Granules size, const Block& taken);
  void free_at_once(Segment* segment, Sharing kept_for, History history);
  void settle(Granules place);
  void settle_oldest();
  // What will be joined with them soon is near, but at a million blocks its neighbours are far from any cache.
  void prefetch_neighbours(Granules place) const {
    if (place == Recent::kNowhere) return;
    const Segment* segment = segments_.find(place);
    segments_.prefetch(segment->end());
    if (segment->before != Segment::kNowhere) segments_.prefetch(segment->before);
  }
  void retain(Segment* segment, History history, Sharing sharing);
  void retained_to_hole(Segment* segment);
  Segment* cut_retained(Segment* segment, Granules at);
  Segment* cut(Segment* segment, Granules at);

  const Granules span_;
  const Granules handle_;
  Segments segments_;
  Places gaps_;  // by beginning
  Places::Tree gap_tree_;
  Places retained_;
  Places::Tree retained_tree_;
  HoleIndex holes_;
  Recent recent_;
  Fragments fragments_;
  std::uint64_t wholly_free_ = 0;
  std::uint64_t retained_bytes_ = 0;
};

}  // namespace gpupool
