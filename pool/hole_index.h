// The holes by size: answers "the smallest hole that fits, the lowest address among equals". Sizes below 1 MiB have one
// bin each, found by a two-level bitmap, each bin a small ordered set of places; larger holes share one set ordered by
// (size, place). Cost: O(1) to find a bin, O(log n) within it. Owned by best_fit, under the tape's lock.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "pool/granule.h"
#include "pool/ordered_map.h"

namespace gpupool {

class HoleIndex {
 public:
  void insert(Range hole) {
    ++holes_;
    if (hole.size() >= kBins) return insert_large(hole);
    Bin& bin = bins_[hole.size()];
    occupy(hole.size());
    bin.lowest = hole.begin < bin.lowest ? hole.begin : bin.lowest;
    places_.insert(bin.places, hole.begin, {});
  }
  void erase(Range hole) {
    --holes_;
    if (hole.size() >= kBins) return erase_large(hole);
    Bin& bin = bins_[hole.size()];
    places_.erase(bin.places, hole.begin);
    if (bin.lowest != hole.begin) return;
    bin.lowest = bin.places.empty() ? kNowhere : places_.key(places_.first(bin.places));
    if (bin.lowest == kNowhere) vacate(hole.size());
  }

  /// The smallest hole of at least `size` granules, lowest place first; empty range when there is none.
  Range best_fit(Granules size) const {
    unsigned bin = next_bin(size);
    if (bin == kBins) return first_large(std::uint64_t{size} << 32);
    return {bins_[bin].lowest, bins_[bin].lowest + bin};
  }
  /// The hole that best_fit would have given next, had `hole` not been there.
  Range following(Range hole) const;
  /// The largest hole; empty when there is none.
  Range largest() const;

  std::uint64_t holes() const { return holes_; }
  /// Sum of all holes. Cost: O(bins in use + large holes).
  std::uint64_t granules() const;

  const char* validate() const;

 private:
  using Places = OrderedMap<std::uint32_t>;
  using SizedPlaces = OrderedMap<std::uint64_t>;
  static constexpr Granules kBins = 2048;  // sizes below this have their own bin
  static constexpr Granules kNowhere = ~Granules{0};

  struct Bin {
    Places::Tree places;
    Granules lowest = kNowhere;  // of the places
  };
  static constexpr unsigned kWords = kBins / 64;

  static std::uint64_t sized(Range hole) { return std::uint64_t{hole.size()} << 32 | hole.begin; }
  static Range from_sized(std::uint64_t key) {
    Granules begin = static_cast<Granules>(key);
    return {begin, begin + static_cast<Granules>(key >> 32)};
  }
  // The first bin from `size` on that is not empty, or kBins.
  unsigned next_bin(Granules size) const {
    if (size >= kBins) return kBins;
    unsigned word = size / 64;
    std::uint64_t here = occupied_[word] >> size % 64;
    if (here != 0) return size + static_cast<unsigned>(std::countr_zero(here));
    std::uint64_t later = occupied_words_ >> word >> 1;
    if (later == 0) return kBins;
    word += 1 + static_cast<unsigned>(std::countr_zero(later));
    return word * 64 + static_cast<unsigned>(std::countr_zero(occupied_[word]));
  }
  void occupy(unsigned bin) {
    occupied_[bin / 64] |= std::uint64_t{1} << bin % 64;
    occupied_words_ |= std::uint64_t{1} << bin / 64;
  }
  void vacate(unsigned bin) {
    occupied_[bin / 64] &= ~(std::uint64_t{1} << bin % 64);
    if (occupied_[bin / 64] == 0) occupied_words_ &= ~(std::uint64_t{1} << bin / 64);
  }
  void insert_large(Range hole) { large_places_.insert(large_, sized(hole), {}); }
  void erase_large(Range hole) { large_places_.erase(large_, sized(hole)); }
  Range first_large(std::uint64_t at_least) const;

  Places places_;
  std::array<Bin, kBins> bins_;
  std::array<std::uint64_t, kWords> occupied_{};
  std::uint64_t occupied_words_ = 0;
  SizedPlaces large_places_;
  SizedPlaces::Tree large_;
  std::uint64_t holes_ = 0;
};

}  // namespace gpupool
