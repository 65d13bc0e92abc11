#include "pool/fragments.h"

namespace gpupool {

std::uint32_t Fragments::take(const Fragment& fragment) {
  std::uint32_t index = slab_.take();
  slab_[index] = fragment;
  if (fragment.line >= per_line_.size()) per_line_.resize(fragment.line + 1, 0);
  ++per_line_[fragment.line];
  return index;
}

void Fragments::give(std::uint32_t index) {
  --per_line_[slab_[index].line];
  slab_.give(index);
}

FragmentList Fragments::make(Range range, std::uint32_t line, std::uint64_t record) {
  std::uint32_t index = take({range, line, FragmentList::kNone, record});
  return {index, index};
}

FragmentList Fragments::join(FragmentList front, FragmentList back) {
  if (front.empty()) return back;
  if (back.empty()) return front;
  Fragment& last = slab_[front.tail];
  const Fragment& first = slab_[back.head];
  if (last.line == first.line && last.record == first.record && last.range.end == first.range.begin) {
    last.range.end = first.range.end;
    last.next = first.next;
    std::uint32_t tail = back.tail == back.head ? front.tail : back.tail;
    give(back.head);
    return {front.head, tail};
  }
  last.next = back.head;
  return {front.head, back.tail};
}

FragmentList Fragments::cut(FragmentList& list, Granules place) {
  if (list.empty() || slab_[list.tail].range.end <= place) return {};
  std::uint32_t before = FragmentList::kNone;
  std::uint32_t i = list.head;
  while (slab_[i].range.end <= place) {
    before = i;
    i = slab_[i].next;
  }
  FragmentList rest{i, list.tail};
  if (slab_[i].range.begin < place) {
    Fragment upper = slab_[i];
    upper.range.begin = place;
    std::uint32_t cut_off = take(upper);
    rest.head = cut_off;
    if (list.tail == i) rest.tail = cut_off;
    slab_[i].range.end = place;
    before = i;
  }
  if (before == FragmentList::kNone) {
    list = {};
  } else {
    slab_[before].next = FragmentList::kNone;
    list.tail = before;
  }
  return rest;
}

void Fragments::discard(FragmentList list) {
  for (std::uint32_t i = list.head; i != FragmentList::kNone;) {
    std::uint32_t next = slab_[i].next;
    give(i);
    i = next;
  }
}

}  // namespace gpupool
