#include "pool/hole_index.h"

#include <bit>

namespace gpupool {

void HoleIndex::insert(Range hole) {
  ++holes_;
  granules_ += hole.size();
  if (hole.size() >= kBins) {
    large_places_.insert(large_, sized(hole), {});
    return;
  }
  places_.insert(bins_[hole.size()], hole.begin, {});
  occupied_[hole.size() / 64] |= std::uint64_t{1} << hole.size() % 64;
  occupied_words_ |= std::uint64_t{1} << hole.size() / 64;
}

void HoleIndex::erase(Range hole) {
  --holes_;
  granules_ -= hole.size();
  if (hole.size() >= kBins) {
    large_places_.erase(large_, large_places_.floor(large_, sized(hole)));
    return;
  }
  Places::Tree& bin = bins_[hole.size()];
  places_.erase(bin, places_.floor(bin, hole.begin));
  if (!bin.empty()) return;
  std::uint64_t& word = occupied_[hole.size() / 64];
  word &= ~(std::uint64_t{1} << hole.size() % 64);
  if (word == 0) occupied_words_ &= ~(std::uint64_t{1} << hole.size() / 64);
}

unsigned HoleIndex::next_bin(Granules size) const {
  if (size >= kBins) return kBins;
  unsigned word = size / 64;
  std::uint64_t here = occupied_[word] & ~std::uint64_t{0} << size % 64;
  if (here != 0) return word * 64 + static_cast<unsigned>(std::countr_zero(here));
  std::uint64_t later = word + 1 < kWords ? occupied_words_ & ~std::uint64_t{0} << (word + 1) : 0;
  if (later == 0) return kBins;
  word = static_cast<unsigned>(std::countr_zero(later));
  return word * 64 + static_cast<unsigned>(std::countr_zero(occupied_[word]));
}

Range HoleIndex::first_large(std::uint64_t at_least) const {
  SizedPlaces::Cursor c = large_places_.at_least(large_, at_least);
  return c.valid() ? from_sized(large_places_.key(c)) : Range{};
}

Range HoleIndex::best_fit(Granules size) const {
  unsigned bin = next_bin(size);
  if (bin == kBins) return first_large(std::uint64_t{size} << 32);
  Granules begin = places_.key(places_.first(bins_[bin]));
  return {begin, begin + bin};
}

Range HoleIndex::following(Range hole) const {
  if (hole.size() >= kBins) return first_large(sized(hole) + 1);
  const Places::Tree& bin = bins_[hole.size()];
  Places::Cursor c = places_.at_least(bin, hole.begin + 1);
  if (!c.valid()) return best_fit(hole.size() + 1);
  return {places_.key(c), places_.key(c) + hole.size()};
}

Range HoleIndex::largest() const {
  if (!large_.empty()) return from_sized(large_places_.key(large_places_.last(large_)));
  if (occupied_words_ == 0) return {};
  unsigned word = 63u - static_cast<unsigned>(std::countl_zero(occupied_words_));
  unsigned size = word * 64 + 63u - static_cast<unsigned>(std::countl_zero(occupied_[word]));
  Granules begin = places_.key(places_.first(bins_[size]));
  return {begin, begin + size};
}

const char* HoleIndex::validate() const {
  std::uint64_t holes = large_.size;
  std::uint64_t granules = 0;
  if (const char* broken = large_places_.validate(large_)) return broken;
  for (SizedPlaces::Cursor c = large_places_.first(large_); c.valid(); c = large_places_.next(c)) {
    granules += from_sized(large_places_.key(c)).size();
  }
  for (Granules size = 0; size < kBins; ++size) {
    const Places::Tree& bin = bins_[size];
    if (const char* broken = places_.validate(bin)) return broken;
    holes += bin.size;
    granules += std::uint64_t{bin.size} * size;
    if ((occupied_[size / 64] >> size % 64 & 1) != !bin.empty()) return "hole_index: a bin's bit does not match its content";
  }
  for (unsigned word = 0; word < kWords; ++word) {
    if ((occupied_words_ >> word & 1) != (occupied_[word] != 0)) return "hole_index: a word's bit does not match its bins";
  }
  if (holes != holes_) return "hole_index: number of holes";
  if (granules != granules_) return "hole_index: sum of holes";
  return nullptr;
}

}  // namespace gpupool
