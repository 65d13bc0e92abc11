#include "pool/segments.h"

#include <vector>

namespace gpupool {
namespace {

constexpr std::size_t kFirstBuckets = 2640;

}  // namespace

Segments::Segments(Granules span)
    : size_(kFirstBuckets), buckets_(new Bucket[kFirstBuckets]), cells_(std::uint64_t{span} / kCell + 1) {}

Segment* Segments::floor(Granules at) const {
  // The cell of `at` may hold beginnings behind it only; the nearest cell before it that holds any, does not.
  const Granules cell = at / kCell;
  if (cells_.contains(cell)) {
    for (Granules begin = at + 1; begin-- > cell * kCell;) {
      if (Segment* segment = find(begin)) return segment;
    }
  }
  if (cell == 0) return nullptr;
  const std::uint64_t before = cells_.at_most(cell - 1);
  if (before == BitTree::kNone) return nullptr;
  Granules begin = static_cast<Granules>(before) * kCell + kCell - 1;
  Segment* segment = find(begin);
  while (segment == nullptr) segment = find(--begin);
  return segment;
}

void Segments::grow() {
  const std::size_t old_size = size_;
  std::unique_ptr<Bucket[]> old(new Bucket[old_size + old_size / 2]);
  old.swap(buckets_);
  size_ += size_ / 2;
  if (outline_ != nullptr) show_in(*outline_);
  for (std::size_t at = 0; at < old_size; ++at) {
    for (const Segment& segment : old[at].segments) {
      if (segment.begin != Segment::kNowhere) *place(segment.begin) = segment;
    }
  }
}

const char* Segments::validate() const {
  std::size_t found = 0;
  std::vector<std::uint32_t> passed(size_, 0);
  for (std::size_t holder = 0; holder < size_; ++holder) {
    for (const Segment& segment : buckets_[holder].segments) {
      if (segment.begin == Segment::kNowhere) continue;
      ++found;
      if (find(segment.begin) != &segment) return "segments: a segment is not found where it lies";
      if (!cells_.contains(segment.begin / kCell)) return "segments: a cell's bit is missing";
      for (std::size_t at = home(segment.begin); at != holder; at = next(at)) ++passed[at];
    }
  }
  if (found != count_) return "segments: number of segments";
  for (std::size_t at = 0; at < size_; ++at) {
    if (buckets_[at].passed != passed[at]) return "segments: entries that passed a bucket";
  }
  return nullptr;
}

}  // namespace gpupool
