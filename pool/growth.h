// Growth: where memory gets mapped and unmapped. Finds the place where a request that no hole fits costs the least new
// memory (holes and gaps between two blocks count together), fills its gaps with handles that lie free elsewhere
// (migration) before it takes new ones from the card, keeps the limits, and gives memory back. The slow path:
// everything here may cost driver calls. Owned by the tape, under its lock.
#pragma once

#include <cstdint>
#include <vector>

#include "pool/address_table.h"
#include "pool/backing.h"
#include "pool/best_fit.h"
#include "pool/handles.h"
#include "pool/reuse.h"
#include "pool/stats.h"
#include "pool/tape_types.h"

namespace gpupool {

class Growth {
 public:
  struct Parts {
    const TapeOptions& options;
    Backing& backing;
    BestFit& space;
    Handles& handles;
    AddressTable& addresses;
    Reuse& reuse;
    Stats& stats;
  };
  explicit Growth(const Parts& parts);

  /// Makes a part of `size` granules mapped throughout, in one hole, that Reuse::ready() can give to `request`. Empty
  /// when it cannot be had; take_error() then tells a driver error that is not plain lack of memory.
  Range extend(Granules size, const Request& request);

  /// Maps up to `bytes` more towards options.size at the end of the tape; returns the bytes still missing, 0 when no
  /// more can be had.
  std::uint64_t prefill(std::uint64_t bytes);

  /// Gives back wholly free handles whose work is done, from the end of the tape, but holds at least `keep` bytes.
  std::uint64_t trim(std::uint64_t keep) { return give_back_until(keep, Rounding::kKeepMore); }

  /// Unmaps and destroys everything; the caller knows that no work is left. The space is not touched: the tape ends.
  void release_all();

  /// Bytes that could still be taken from the card within pool.max and headroom.
  std::uint64_t allowance() const;

  int take_error() {
    int error = error_;
    error_ = 0;
    return error;
  }

 private:
  struct Donor {
    Granules begin;
    Granules size;
  };

  Granules unit() const { return unit_; }
  Granules missing_in(Range part) const;
  Range choose_place(Granules size, const Request& request);
  Range extend_given(Granules size);
  void collect_donors(Range except);
  bool fill(Range gap);
  bool lift(Granules begin, Handle& handle);
  bool lay(Granules begin, const Handle& handle);
  bool create(std::uint64_t bytes, Handle& handle);
  bool migrate_into(Granules place, Granules room, Granules& laid);
  bool recut_into(Granules place, Granules room, Granules& laid);
  bool grow_into(Granules place, Granules room, Granules& laid);
  bool give_back(Granules begin);
  enum class Rounding : std::uint8_t { kKeepMore, kKeepLess };  // where handles do not divide what is to be held
  std::uint64_t give_back_until(std::uint64_t held, Rounding rounding);
  std::uint64_t least_step() const;
  std::uint64_t piece() const;
  void note_reserved();

  Parts p_;
  const Granules unit_;
  std::vector<Donor> donors_;
  int error_ = 0;
};

}  // namespace gpupool
