#include "pool/fragments.h"

#include <numeric>

namespace gpupool {

std::uint32_t Fragments::take(const Fragment& fragment) {
  std::uint32_t index = slab_.take();
  slab_[index] = fragment;
  ++count_of(fragment.line);
  return index;
}

void Fragments::give(std::uint32_t index) {
  --per_line_[slab_[index].line];
  slab_.give(index);
}

History Fragments::make_list(const Fragment& fragment) {
  std::uint32_t index = take(fragment);
  return History::list(index, index);
}

// The same history with its fragment in a list, where others can follow.
History Fragments::listed(History history, Range range) {
  if (!history.whole()) return history;
  --per_line_[history.line()];
  return make_list({range, history.line(), History::kNone, history.record()});
}

History Fragments::join_lists(History front, History back) {
  if (front.clean()) return back;
  if (back.clean()) return front;
  Fragment& last = slab_[front.tail()];
  const Fragment& first = slab_[back.head()];
  if (last.line == first.line && last.record == first.record && last.range.end == first.range.begin) {
    last.range.end = first.range.end;
    last.next = first.next;
    std::uint32_t tail = back.tail() == back.head() ? front.tail() : back.tail();
    give(back.head());
    return History::list(front.head(), tail);
  }
  last.next = back.head();
  return History::list(front.head(), back.tail());
}

History Fragments::cut_list(History& list, Granules place) {
  if (slab_[list.tail()].range.end <= place) return {};
  std::uint32_t before = History::kNone;
  std::uint32_t i = list.head();
  while (slab_[i].range.end <= place) {
    before = i;
    i = slab_[i].next;
  }
  History rest = History::list(i, list.tail());
  if (slab_[i].range.begin < place) {
    Fragment upper = slab_[i];
    upper.range.begin = place;
    std::uint32_t cut_off = take(upper);
    rest = History::list(cut_off, list.tail() == i ? cut_off : list.tail());
    slab_[i].range.end = place;
    before = i;
  }
  if (before == History::kNone) {
    list = {};
  } else {
    slab_[before].next = History::kNone;
    list = History::list(list.head(), before);
  }
  return rest;
}

void Fragments::discard_list(History list) {
  for (std::uint32_t i = list.head(); i != History::kNone;) {
    std::uint32_t next = slab_[i].next;
    give(i);
    i = next;
  }
}

std::uint64_t Fragments::in_use() const {
  return std::accumulate(per_line_.begin(), per_line_.end(), std::uint64_t{0});
}

const char* Fragments::validate(History history, Range range, std::uint64_t& fragments, std::size_t& listed) const {
  if (history.clean()) return nullptr;
  if (history.whole()) {
    ++fragments;
    return nullptr;
  }
  Granules from = range.begin;
  std::uint32_t last = History::kNone;
  for (std::uint32_t i = history.head(); i != History::kNone; i = slab_[i].next) {
    const Fragment& fragment = slab_[i];
    if (fragment.range.empty() || fragment.range.begin < from || fragment.range.end > range.end) {
      return "fragments: a fragment lies outside its hole or out of order";
    }
    from = fragment.range.end;
    last = i;
    ++fragments;
    ++listed;
  }
  return last == history.tail() ? nullptr : "fragments: a list's tail is not its last fragment";
}

}  // namespace gpupool
