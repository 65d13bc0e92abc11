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
  for (Granules size = next_bin(0); size < kBins; size = next_bin(size + 1))
    sum += std::uint64_t{bins_[size].places.size} * size;
  for (SizedPlaces::Cursor c = large_places_.first(large_); c.valid(); c = large_places_.next(c)) {
    sum += from_sized(large_places_.key(c)).size();
  }
  return sum;
}

// Bins without their bit are not looked at, so that this costs what is in use: holes in one are missing from the sum,
// and a lowest place that is left over in an empty one shows once the bin is filled.
const char* HoleIndex::validate() const {
  std::uint64_t holes = large_.size;
  if (const char* broken = large_places_.validate(large_)) return broken;
  for (unsigned word = 0; word < kWords; ++word) {
    if ((occupied_words_ >> word & 1) != (occupied_[word] != 0))
      return "hole_index: a word's bit does not match its bins";
  }
  for (Granules size = next_bin(0); size < kBins; size = next_bin(size + 1)) {
    const Bin& bin = bins_[size];
    if (bin.places.empty()) return "hole_index: a bin's bit does not match its content";
    if (const char* broken = places_.validate(bin.places)) return broken;
    if (bin.lowest != places_.key(places_.first(bin.places))) return "hole_index: a bin's lowest place";
    holes += bin.places.size;
  }
  return holes == holes_ ? nullptr : "hole_index: number of holes";
}

}  // namespace gpupool
