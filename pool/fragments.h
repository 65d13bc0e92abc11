// Fragments: the parts of holes that somebody's earlier work may still touch. Each says which bytes, on which time line
// they were freed and under which record. A hole carries its history in eight bytes: clean; or one fragment that covers
// it all, spelled out, as nearly every hole has when one stream frees; or a list of fragments in address order, between
// which bytes may be clean. Histories are cut and joined as holes are split and merged, so coalescing never loses one.
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
  std::uint32_t next = 0;    // following fragment of the same hole, where it is one of a list
  std::uint64_t record = 0;  // number of the record that covers it; may lie in the future of its line (not made yet)
};

/// 62 bits; means something only together with the range of its hole.
class History {
 public:
  static constexpr std::uint32_t kNone = (1u << 30) - 1;  // ends a list
  static constexpr std::uint64_t kMask = (std::uint64_t{1} << 62) - 1;

  History() = default;
  explicit History(std::uint64_t bits) : bits_(bits) {}
  std::uint64_t bits() const { return bits_; }
  bool operator==(const History&) const = default;

  bool clean() const { return bits_ == 0; }
  bool whole() const { return (bits_ & kWhole) != 0; }
  bool list() const { return !clean() && !whole(); }

  static bool can_be_whole(std::uint32_t line, std::uint64_t record) {
    return line <= kMostLine && record <= kMostRecord;
  }
  static History whole(std::uint32_t line, std::uint64_t record) {
    return History(kWhole | std::uint64_t{line} << kRecordBits | record);
  }
  std::uint32_t line() const { return static_cast<std::uint32_t>(bits_ >> kRecordBits) & kMostLine; }
  std::uint64_t record() const { return bits_ & kMostRecord; }
  /// Is it one fragment of that line?
  bool is_of(std::uint32_t line) const { return whole() && this->line() == line; }

  static History list(std::uint32_t head, std::uint32_t tail) {
    return History(kList | std::uint64_t{head} << 30 | tail);
  }
  std::uint32_t head() const { return static_cast<std::uint32_t>(bits_ >> 30) & kNone; }
  std::uint32_t tail() const { return static_cast<std::uint32_t>(bits_) & kNone; }

 private:
  static constexpr std::uint64_t kWhole = std::uint64_t{1} << 61;
  static constexpr std::uint64_t kList = std::uint64_t{1} << 60;
  static constexpr unsigned kRecordBits = 48;
  static constexpr std::uint32_t kMostLine = (1u << 12) - 1;
  static constexpr std::uint64_t kMostRecord = (std::uint64_t{1} << kRecordBits) - 1;
  std::uint64_t bits_ = 0;
};

class Fragments {
 public:
  History make(Range range, std::uint32_t line, std::uint64_t record) {
    if (!History::can_be_whole(line, record)) return make_list({range, line, History::kNone, record});
    ++count_of(line);
    return History::whole(line, record);
  }

  /// Joins the histories of two holes that meet; neighbours with the same history become one fragment.
  History join(History front, Range front_range, History back, Range back_range) {
    if (front == back && !front.list()) {
      if (front.whole()) --per_line_[front.line()];
      return front;
    }
    return join_lists(listed(front, front_range), listed(back, back_range));
  }

  /// Cuts at a place: `history` keeps what lies before, the rest is returned. A fragment across the place is cut in
  /// two.
  History cut(History& history, Range range, Granules place) {
    if (history.clean() || place >= range.end) return {};
    if (place <= range.begin) {
      History all = history;
      history = {};
      return all;
    }
    if (!history.whole()) return cut_list(history, place);
    ++per_line_[history.line()];
    return history;
  }

  void discard(History history) {
    if (history.whole()) {
      --per_line_[history.line()];
    } else if (!history.clean()) {
      discard_list(history);
    }
  }

  /// Calls visit(fragment) for each that overlaps `part` of the hole at `range`, until it answers false. True when all
  /// were visited.
  template <class Visit>
  bool visit(History history, Range range, Range part, Visit&& visit) const {
    if (history.clean()) return true;
    if (history.whole()) return !range.overlaps(part) || visit(Fragment{range, history.line(), 0, history.record()});
    for (std::uint32_t i = history.head(); i != History::kNone; i = slab_[i].next) {
      const Fragment& fragment = slab_[i];
      if (fragment.range.begin >= part.end) break;
      if (fragment.range.end <= part.begin) continue;
      if (!visit(fragment)) return false;
    }
    return true;
  }

  /// How many fragments a line still has; a destroyed stream's line may be used anew at 0.
  std::uint32_t count(std::uint32_t line) const { return line < per_line_.size() ? per_line_[line] : 0; }
  /// All fragments, and those of them that are spelled out in lists.
  std::uint64_t in_use() const;
  std::size_t in_lists() const { return slab_.in_use(); }

  /// Names the first broken invariant of one history, or nullptr; adds its number of fragments to `fragments`, those in
  /// lists to `listed`.
  const char* validate(History history, Range range, std::uint64_t& fragments, std::size_t& listed) const;

 private:
  std::uint32_t& count_of(std::uint32_t line) {
    if (line >= per_line_.size()) per_line_.resize(line + 1, 0);
    return per_line_[line];
  }
  std::uint32_t take(const Fragment& fragment);
  void give(std::uint32_t index);
  History make_list(const Fragment& fragment);
  History listed(History history, Range range);
  History join_lists(History front, History back);
  History cut_list(History& list, Granules place);
  void discard_list(History list);

  NodeSlab<Fragment> slab_;
  std::vector<std::uint32_t> per_line_;
};

}  // namespace gpupool
