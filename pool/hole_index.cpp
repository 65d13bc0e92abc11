#include "pool/hole_index.h"

namespace gpupool {

Range HoleIndex::first_large(std::uint64_t at_least) const {
  SizedPlaces::Cursor c = large_places_.at_least(large_, at_least);
  return c.valid() ? from_sized(large_places_.key(c)) : Range{};
}

Range HoleIndex::following(Range hole) const {
  if (hole.size() >= kBins) return first_large(sized(hole) + 1);
  const Places::Tree& bin = bins_[hole.size()].places;
  Places::Cursor c = places_.at_least(bin, hole.begin + 1);
  if (!c.valid()) return best_fit(hole.size() + 1);
  return {places_.key(c), places_.key(c) + hole.size()};
}

Range HoleIndex::largest() const {
  if (!large_.empty()) return from_sized(large_places_.key(large_places_.last(large_)));
  if (occupied_words_ == 0) return {};
  unsigned word = 63u - static_cast<unsigned>(std::countl_zero(occupied_words_));
  unsigned size = word * 64 + 63u - static_cast<unsigned>(std::countl_zero(occupied_[word]));
  return {bins_[size].lowest, bins_[size].lowest + size};
}

std::uint64_t HoleIndex::granules() const {
  std::uint64_t sum = 0;
  for (Granules size = 0; size < kBins; ++size) sum += std::uint64_t{bins_[size].places.size} * size;
  for (SizedPlaces::Cursor c = large_places_.first(large_); c.valid(); c = large_places_.next(c)) {
    sum += from_sized(large_places_.key(c)).size();
  }
  return sum;
}

const char* HoleIndex::validate() const {
  std::uint64_t holes = large_.size;
  if (const char* broken = large_places_.validate(large_)) return broken;
  for (Granules size = 0; size < kBins; ++size) {
    const Places::Tree& bin = bins_[size].places;
    if (const char* broken = places_.validate(bin)) return broken;
    Granules lowest = bin.empty() ? kNowhere : places_.key(places_.first(bin));
    if (bins_[size].lowest != lowest) return "hole_index: a bin's lowest place";
    holes += bin.size;
    if ((occupied_[size / 64] >> size % 64 & 1) != !bin.empty())
      return "hole_index: a bin's bit does not match its content";
  }
  for (unsigned word = 0; word < kWords; ++word) {
    if ((occupied_words_ >> word & 1) != (occupied_[word] != 0))
      return "hole_index: a word's bit does not match its bins";
  }
  return holes == holes_ ? nullptr : "hole_index: number of holes";
}

}  // namespace gpupool
