#include "pool/best_fit.h"

#include <new>

namespace gpupool {

BestFit::BestFit(Granules span, Granules handle)
    : span_(span),
      handle_(handle),
      likely_leaf_(static_cast<std::uint32_t*>(std::calloc(std::size_t{span} / kNear + 1, sizeof(std::uint32_t))),
                   &std::free) {
  if (likely_leaf_ == nullptr) throw std::bad_alloc();
  map_.insert(tree_, 0, gap());
}

void BestFit::take(const Hole& whole, Range part, const Block& taken) {
  unlist_hole(whole.range);
  History front = whole.history;
  History middle = fragments_.cut(front, whole.range, part.begin);
  History back = fragments_.cut(middle, {part.begin, whole.range.end}, part.end);
  fragments_.discard(middle);
  Map::Cursor c = whole.cursor;
  Range before{whole.range.begin, part.begin};
  Range behind{part.end, whole.range.end};
  if (before.empty()) {
    map_.value(c) = segment_of(taken);
  } else {
    map_.value(c) = hole(front);
    list_hole(before);
    c = map_.insert_behind(tree_, c, part.begin, segment_of(taken));
  }
  if (!behind.empty()) {
    map_.insert_behind(tree_, c, behind.begin, hole(back));
    list_hole(behind);
  }
  // The next request of this size will want the next hole of this size, which at a million blocks is far from any
  // cache.
  Range next = holes_.best_fit(whole.range.size());
  map_.prefetch(likely_leaf_[next.begin / kNear]);
}

void BestFit::free(const Owned& owned, std::uint32_t line, std::uint64_t record) {
  if (owned.block.pinned) {
    map_.value(owned.cursor).kind = Kind::kRetained;
    retained_bytes_ += bytes_of(owned.range.size());
    return;
  }
  settle_hole(owned.cursor, owned.range, record == 0 ? History{} : fragments_.make(owned.range, line, record));
}

// The segment at `c`, which is no hole yet, becomes one and joins its neighbours.
void BestFit::settle_hole(Map::Cursor c, Range range, History history) {
  Map::Cursor left = map_.previous(c);
  if (left.valid() && map_.value(left).kind == Kind::kHole) {
    Range neighbour{map_.key(left), range.begin};
    unlist_hole(neighbour);
    history = fragments_.join(history_of(map_.value(left)), neighbour, history, range);
    map_.erase(tree_, c);
    c = left;
    range.begin = neighbour.begin;
  }
  Map::Cursor right = map_.next(c);
  if (right.valid() && map_.value(right).kind == Kind::kHole) {
    Range neighbour = range_of(right);
    unlist_hole(neighbour);
    history = fragments_.join(history, range, history_of(map_.value(right)), neighbour);
    map_.erase(tree_, right);
    range.end = neighbour.end;
  }
  map_.value(c) = hole(history);
  list_hole(range);
}

void BestFit::gap_to_hole(Range range) {
  Map::Cursor c = map_.floor(tree_, range.begin);
  Range whole = range_of(c);
  if (range.end < whole.end) map_.insert_behind(tree_, c, range.end, gap());
  c = map_.floor(tree_, range.begin);
  if (whole.begin < range.begin) c = map_.insert_behind(tree_, c, range.begin, gap());
  settle_hole(c, range, {});
}

void BestFit::hole_to_gap(Range range) {
  Hole whole = hole_at(range.begin);
  unlist_hole(whole.range);
  History front = whole.history;
  History middle = fragments_.cut(front, whole.range, range.begin);
  History back = fragments_.cut(middle, {range.begin, whole.range.end}, range.end);
  fragments_.discard(middle);
  Map::Cursor c = whole.cursor;
  if (whole.range.begin < range.begin) {
    map_.value(c) = hole(front);
    list_hole({whole.range.begin, range.begin});
    c = map_.insert_behind(tree_, c, range.begin, gap());
  } else {
    map_.value(c) = gap();
  }
  if (range.end < whole.range.end) {
    map_.insert_behind(tree_, c, range.end, hole(back));
    list_hole({range.end, whole.range.end});
    c = map_.floor(tree_, range.begin);
  }
  Map::Cursor right = map_.next(c);
  if (right.valid() && map_.value(right).kind == Kind::kGap) map_.erase(tree_, right);
  Map::Cursor left = map_.previous(c);
  if (left.valid() && map_.value(left).kind == Kind::kGap) map_.erase(tree_, c);
}

Range BestFit::span_with_gap_behind(Granules place) const {
  Map::Cursor c = map_.floor(tree_, place);
  while (c.valid() && (map_.value(c).kind != Kind::kGap || range_of(c).end <= place)) c = map_.next(c);
  if (!c.valid()) return {};
  auto is_free = [&](Map::Cursor at) {
    return at.valid() && (map_.value(at).kind == Kind::kGap || map_.value(at).kind == Kind::kHole);
  };
  Map::Cursor first = c;
  for (Map::Cursor before = map_.previous(first); is_free(before); before = map_.previous(first)) first = before;
  Map::Cursor last = c;
  for (Map::Cursor behind = map_.next(last); is_free(behind); behind = map_.next(last)) last = behind;
  return {map_.key(first), range_of(last).end};
}

Range BestFit::last_gap() const {
  Map::Cursor c = map_.last(tree_);
  return map_.value(c).kind == Kind::kGap ? range_of(c) : Range{};
}

const char* BestFit::validate() const {
  if (const char* broken = map_.validate(tree_)) return broken;
  if (const char* broken = holes_.validate()) return broken;
  std::uint64_t holes = 0;
  std::uint64_t granules = 0;
  std::uint64_t wholly_free = 0;
  std::uint64_t fragments = 0;
  std::size_t listed = 0;
  Kind previous = Kind::kBlock;
  Granules expected = 0;
  for (Map::Cursor c = map_.first(tree_); c.valid(); c = map_.next(c)) {
    Range range = range_of(c);
    if (range.begin != expected || range.empty()) return "best_fit: segments do not cover the tape";
    expected = range.end;
    Kind kind = map_.value(c).kind;
    if (kind == previous && (kind == Kind::kHole || kind == Kind::kGap)) return "best_fit: neighbours were not merged";
    previous = kind;
    if (kind != Kind::kHole) continue;
    ++holes;
    granules += range.size();
    wholly_free += aligned_inside(range);
    if (const char* broken = fragments_.validate(history_of(map_.value(c)), range, fragments, listed)) return broken;
    if (holes_.best_fit(range.size()).size() != range.size()) return "best_fit: a hole is missing from the index";
  }
  if (expected != span_) return "best_fit: segments do not reach the end of the tape";
  if (holes != holes_.holes() || granules != holes_.granules()) return "best_fit: map and index count different holes";
  if (wholly_free != wholly_free_) return "best_fit: wholly free granules";
  if (fragments != fragments_.in_use() || listed != fragments_.in_lists()) return "best_fit: fragments lost or shared";
  return nullptr;
}

}  // namespace gpupool
