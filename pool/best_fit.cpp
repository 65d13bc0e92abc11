#include "pool/best_fit.h"

#include <algorithm>

namespace gpupool {
namespace {

constexpr unsigned kAhead = 4;  // the neighbours of how many blocks are fetched before they are wanted

}  // namespace

BestFit::BestFit(Granules span, Granules handle) : span_(span), handle_(handle), segments_(span) {
  become(*insert({0, span}, Segment::kNowhere), Kind::kGap);
  become(*insert({span, span}, 0), Kind::kEnd);
  gaps_.insert(gap_tree_, 0, {});
}

Segment* BestFit::insert(Range range, Granules before) {
  Segment* segment = segments_.insert(range.begin);
  segment->size = range.size();
  segment->before = before;
  return segment;
}

void BestFit::take_part(Segment* segment, Granules begin, Granules size, const Block& taken) {
  const Range whole = segment->range();
  unlist_hole(whole);
  History middle = history_of(*segment);
  History front;
  if (begin != whole.begin) {
    front = middle;
    middle = fragments_.cut(front, whole, begin);
  }
  const Granules end = begin + size;
  const History back = fragments_.cut(middle, {begin, whole.end}, end);
  fragments_.discard(middle);
  if (begin != whole.begin) {
    segment->size = begin - whole.begin;
    become(*segment, Kind::kHole, front.bits());
    list_hole({whole.begin, begin});
    segment = insert({begin, end}, whole.begin);
  }
  segment->size = size;
  become_block(*segment, taken);
  if (end != whole.end) {
    become(*insert({end, whole.end}, begin), Kind::kHole, back.bits());
    list_hole({end, whole.end});
  }
  segments_.find(whole.end)->before = end == whole.end ? begin : end;
  // The next request of this size will want the next hole of this size, which at a million blocks is far from any
  // cache.
  segments_.prefetch(holes_.best_fit(whole.size()).begin);
}

void BestFit::free_at_once(Segment* segment, Sharing kept_for, History history) {
  if (kept_for != Sharing::kNone) return retain(segment, history, kept_for);
  become_hole(segment, history);
}

void BestFit::settle(Granules place) {
  Segment* segment = segments_.find(place);
  recent_.remove(segment->range());
  become_hole(segment, history_of(*segment));
}

// Many at once: the one free in some hundreds that does it takes longer, all together take less time, as what the next
// ones need is on its way meanwhile.
void BestFit::settle_oldest() {
  for (unsigned turn = 0; turn < Recent::kAtOnce; ++turn) {
    prefetch_neighbours(recent_.in_turn(turn + kAhead));
    if (const Granules place = recent_.in_turn(turn); place != Recent::kNowhere) settle(place);
  }
}

void BestFit::settle_recent() {
  for (Granules size = 1; recent_.count() != 0; ++size) {
    while (const Recent::Entry* oldest = recent_.oldest(size)) settle(oldest->place);
  }
}

void BestFit::retain(Segment* segment, History history, Sharing kept_for) {
  become(*segment, Kind::kRetained, history.bits());
  segment->marks |= bits_of(kept_for);
  retained_.insert(retained_tree_, segment->begin, {});
  retained_bytes_ += bytes_of(segment->size);
}

void BestFit::retained_to_hole(Segment* segment) {
  retained_.erase(retained_tree_, segment->begin);
  retained_bytes_ -= bytes_of(segment->size);
  become_hole(segment, history_of(*segment));
}

bool BestFit::share(Range range, Sharing with) {
  bool any = false;
  Segment* s = segments_.floor(range.begin);
  for (; s != nullptr && s->begin < range.end && s->begin != span_; s = behind(s)) {
    if (kind(*s) != Kind::kBlock) continue;
    s->marks = (s->marks & ~(kSharingMask << kSharingShift)) | bits_of(std::max(sharing(*s), with));
    any = true;
  }
  return any;
}

bool BestFit::release(Granules place) {
  Segment* segment = segments_.find(place);
  const bool shared = segment != nullptr && (kind(*segment) == Kind::kBlock || kind(*segment) == Kind::kRetained);
  if (!shared || sharing(*segment) != Sharing::kAnnounced) return false;
  segment->marks ^= bits_of(Sharing::kAnnounced) ^ bits_of(Sharing::kEnded);
  return true;
}

bool BestFit::regain_ended() {
  bool any = false;
  for (Range kept = retained_from(0); !kept.empty(); kept = retained_from(kept.end)) {
    Segment* segment = segments_.find(kept.begin);
    if (sharing(*segment) != Sharing::kEnded) continue;
    retained_to_hole(segment);
    any = true;
  }
  return any;
}

Range BestFit::retained_from(Granules place) const {
  const Places::Cursor c = retained_.at_least(retained_tree_, place);
  return c.valid() ? segments_.find(retained_.key(c))->range() : Range{};
}

// A segment that is no hole yet becomes one and joins its neighbours.
void BestFit::become_hole(Segment* segment, History history) {
  Range range = segment->range();
  Segment* right = segments_.find(range.end);
  Segment* left = before(segment);
  if (kind(*right) == Kind::kHole) {
    const Range joined = right->range();
    unlist_hole(joined);
    history = fragments_.join(history, range, history_of(*right), joined);
    range.end = joined.end;
    segments_.erase(right, range.begin, range.end);
    right = segments_.find(range.end);
    right->before = range.begin;
  }
  if (left != nullptr && kind(*left) == Kind::kHole) {
    const Range joined = left->range();
    unlist_hole(joined);
    history = fragments_.join(history_of(*left), joined, history, range);
    segments_.erase(segment, joined.begin, range.end);
    range.begin = joined.begin;
    right->before = range.begin;
    segment = left;
  }
  segment->size = range.size();
  become(*segment, Kind::kHole, history.bits());
  list_hole(range);
}

// A segment that is no gap yet becomes one and joins its neighbours.
void BestFit::become_gap(Segment* segment) {
  Range range = segment->range();
  Segment* right = segments_.find(range.end);
  Segment* left = before(segment);
  if (kind(*right) == Kind::kGap) {
    range.end = right->end();
    gaps_.erase(gap_tree_, right->begin);
    segments_.erase(right, range.begin, range.end);
    right = segments_.find(range.end);
    right->before = range.begin;
  }
  if (left != nullptr && kind(*left) == Kind::kGap) {
    segments_.erase(segment, left->begin, range.end);
    range.begin = left->begin;
    right->before = range.begin;
    segment = left;
  } else {
    gaps_.insert(gap_tree_, range.begin, {});
  }
  segment->size = range.size();
  become(*segment, Kind::kGap);
}

// Cuts a segment in two; both keep what it was. Returns the one that begins at `at`.
Segment* BestFit::cut(Segment* segment, Granules at) {
  const Segment whole = *segment;
  segment->size = at - whole.begin;
  Segment* upper = insert({at, whole.end()}, whole.begin);
  upper->marks = whole.marks;
  upper->content = whole.content;
  behind(upper)->before = at;
  return upper;
}

// Both remain retained. Returns the upper one, which nobody can release: it is not known by its beginning.
Segment* BestFit::cut_retained(Segment* segment, Granules at) {
  History front = history_of(*segment);
  const History back = fragments_.cut(front, segment->range(), at);
  Segment* upper = cut(segment, at);
  segments_.find(upper->before)->content = front.bits();
  upper->content = back.bits();
  if (sharing(*upper) == Sharing::kAnnounced)
    upper->marks ^= bits_of(Sharing::kAnnounced) ^ bits_of(Sharing::kReferenced);
  retained_.insert(retained_tree_, at, {});
  return upper;
}

void BestFit::gap_to_hole(Range range) {
  Segment* gap = segments_.floor(range.begin);
  if (gap->begin < range.begin) {
    gap = cut(gap, range.begin);
  } else {
    gaps_.erase(gap_tree_, range.begin);
  }
  if (range.end < gap->end()) {
    cut(gap, range.end);
    gaps_.insert(gap_tree_, range.end, {});
    gap = segments_.find(range.begin);
  }
  become_hole(gap, {});
}

void BestFit::free_to_gap(Range range) {
  Segment* first = segments_.floor(range.begin);
  if (kind(*first) == Kind::kRetained && first->begin < range.begin) cut_retained(first, range.begin);
  for (Range kept = retained_from(range.begin); !kept.empty() && kept.begin < range.end;
       kept = retained_from(range.begin)) {
    Segment* segment = segments_.find(kept.begin);
    if (kept.end > range.end) cut_retained(segment, range.end);
    retained_to_hole(segments_.find(kept.begin));
  }
  const Hole whole = hole_at(range.begin);
  unlist_hole(whole.range);
  History front = whole.history;
  History middle = fragments_.cut(front, whole.range, range.begin);
  History back = fragments_.cut(middle, {range.begin, whole.range.end}, range.end);
  fragments_.discard(middle);
  Segment* hole = whole.segment;
  if (whole.range.begin < range.begin) {
    hole->content = front.bits();
    list_hole({whole.range.begin, range.begin});
    hole = cut(hole, range.begin);
  }
  if (range.end < whole.range.end) {
    cut(hole, range.end)->content = back.bits();
    list_hole({range.end, whole.range.end});
    hole = segments_.find(range.begin);
  }
  become_gap(hole);
}

// The first gap that ends behind `place`.
BestFit::Places::Cursor BestFit::gap_behind(Granules place) const {
  const Places::Cursor c = gaps_.floor(gap_tree_, place);
  if (c.valid() && segments_.find(gaps_.key(c))->end() > place) return c;
  return gaps_.at_least(gap_tree_, place);
}

Range BestFit::span_with_gap_behind(Granules place) const {
  const Places::Cursor c = gap_behind(place);
  if (!c.valid()) return {};
  const auto is_free = [](const Segment* s) {
    return s != nullptr && (kind(*s) == Kind::kGap || kind(*s) == Kind::kHole);
  };
  const Segment* first = segments_.find(gaps_.key(c));
  const Segment* last = first;
  for (const Segment* s = first; is_free(s); s = before(s)) first = s;
  for (const Segment* s = last; is_free(s); s = behind(s)) last = s;
  return {first->begin, last->end()};
}

Range BestFit::last_gap() const {
  const Segment* last = segments_.find(segments_.find(span_)->before);
  return kind(*last) == Kind::kGap ? last->range() : Range{};
}

const char* BestFit::validate() const {
  if (const char* broken = segments_.validate()) return broken;
  if (const char* broken = gaps_.validate(gap_tree_)) return broken;
  if (const char* broken = holes_.validate()) return broken;
  if (const char* broken = recent_.validate()) return broken;
  std::uint64_t holes = 0;
  std::uint64_t granules = 0;
  std::uint64_t wholly_free = 0;
  std::uint64_t fragments = 0;
  std::uint64_t recent = 0;
  std::uint64_t recent_granules = 0;
  std::uint64_t retained = 0;
  std::uint64_t retained_bytes = 0;
  std::size_t listed = 0;
  std::size_t gaps = 0;
  std::size_t segments = 1;
  Kind previous = Kind::kBlock;
  Granules before = Segment::kNowhere;
  for (const Segment* s = segments_.find(0);; s = behind(s), ++segments) {
    if (s == nullptr) return "best_fit: segments do not cover the tape";
    if (s->before != before) return "best_fit: a segment's left neighbour";
    before = s->begin;
    if (kind(*s) == Kind::kEnd) break;
    if (s->size == 0 || s->end() > span_) return "best_fit: a segment is empty or leaves the tape";
    if (segments_.floor(s->begin) != s || segments_.floor(s->end() - 1) != s)
      return "best_fit: a segment is not found by what it covers";
    if (kind(*s) == previous && (previous == Kind::kHole || previous == Kind::kGap))
      return "best_fit: neighbours were not merged";
    previous = kind(*s);
    if (previous == Kind::kGap) {
      const Places::Cursor c = gaps_.floor(gap_tree_, s->begin);
      if (!c.valid() || gaps_.key(c) != s->begin) return "best_fit: a gap is missing from the index";
      ++gaps;
    }
    if (previous != Kind::kHole && previous != Kind::kRecent && previous != Kind::kRetained) continue;
    if (const char* broken = fragments_.validate(history_of(*s), s->range(), fragments, listed)) return broken;
    if (previous == Kind::kRecent) {
      if (!recent_.holds(s->range())) return "best_fit: a recent block is in no queue";
      ++recent;
      recent_granules += s->size;
      continue;
    }
    if (previous == Kind::kRetained) {
      if (retained_from(s->begin).begin != s->begin) return "best_fit: a retained block is missing from the index";
      ++retained;
      retained_bytes += bytes_of(s->size);
      continue;
    }
    ++holes;
    granules += s->size;
    wholly_free += aligned_inside(s->range());
    if (holes_.best_fit(s->size).size() != s->size) return "best_fit: a hole is missing from the index";
  }
  if (segments != segments_.count()) return "best_fit: segments that are not reached";
  if (gaps != gap_tree_.size) return "best_fit: the index of gaps holds what is none";
  if (holes != holes_.holes() || granules != holes_.granules()) return "best_fit: map and index count different holes";
  if (recent != recent_.count() || recent_granules != recent_.granules()) return "best_fit: blocks freed lately";
  if (retained != retained_tree_.size || retained_bytes != retained_bytes_) return "best_fit: retained blocks";
  if (wholly_free != wholly_free_) return "best_fit: wholly free granules";
  if (fragments != fragments_.in_use() || listed != fragments_.in_lists()) return "best_fit: fragments lost or shared";
  return nullptr;
}

}  // namespace gpupool
