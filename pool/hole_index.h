// The holes by size: answers "the smallest hole that fits, the lowest address among equals". Sizes below 1 MiB have one bin each, found
// by a two-level bitmap, each bin a small ordered set of places; larger holes share one set ordered by (size, place).
// Cost: O(1) to find a bin, O(log n) within it. Owned by best_fit, under the tape's lock.
#pragma once

#include <array>
#include <cstdint>

#include "pool/granule.h"
#include "pool/ordered_map.h"

namespace gpupool {

class HoleIndex {
 public:
  void insert(Range hole);
  void erase(Range hole);

  /// The smallest hole of at least `size` granules, lowest place first; empty range when there is none.
  Range best_fit(Granules size) const;
  /// The hole that best_fit would have given next, had `hole` not been there.
  Range following(Range hole) const;
  /// The largest hole; empty when there is none.
  Range largest() const;

  std::uint64_t holes() const { return holes_; }
  std::uint64_t granules() const { return granules_; }

  const char* validate() const;

 private:
  using Places = OrderedMap<std::uint32_t>;
  using SizedPlaces = OrderedMap<std::uint64_t>;
  static constexpr Granules kBins = 2048;  // sizes below this have their own bin
  static constexpr unsigned kWords = kBins / 64;

  static std::uint64_t sized(Range hole) { return std::uint64_t{hole.size()} << 32 | hole.begin; }
  static Range from_sized(std::uint64_t key) {
    Granules begin = static_cast<Granules>(key);
    return {begin, begin + static_cast<Granules>(key >> 32)};
  }
  unsigned next_bin(Granules size) const;  // kBins when all bins from `size` on are empty
  Range first_large(std::uint64_t at_least) const;

  Places places_;
  std::array<Places::Tree, kBins> bins_;
  std::array<std::uint64_t, kWords> occupied_{};
  std::uint64_t occupied_words_ = 0;
  SizedPlaces large_places_;
  SizedPlaces::Tree large_;
  std::uint64_t holes_ = 0;
  std::uint64_t granules_ = 0;
};

}  // namespace gpupool
