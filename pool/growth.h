// Growth: where memory gets mapped and unmapped. Finds the place where a request that no hole fits costs the least new
// memory (holes and gaps between two blocks count together), fills its gaps with handles that lie free elsewhere
// (migration) before it takes new ones from the card, keeps the limits, and gives memory back. Memory of the host, for
// overflow, has an area of its own at the begin of the tape, so that no block lies in both. The slow path: everything
// here may cost driver calls. Owned by the tape, under its lock.
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
  /// when it cannot be had; take_error() then tells a driver error that is not plain lack of memory. kBlock waits on
  /// the host for handles that lie free but have work in flight; kAsk is empty, too, where these are needed:
  /// would_wait().
  Range extend(Granules size, const Request& request, Effort effort);
  bool would_wait() const { return would_wait_; }

  /// Where memory of the card begins; what lies before is the host's. 0 without overflow.
  Granules device_begin() const { return device_begin_; }

  /// Maps up to `bytes` more towards options.size at the end of the tape; returns the bytes still missing, 0 when no
  /// more can be had.
  std::uint64_t prefill(std::uint64_t bytes);

  /// Gives back wholly free handles whose work is done: all of the host's, what regain() gives, then the card's from
  /// the end of the tape, of which at least `keep` bytes stay. Returns what the card got back.
  std::uint64_t trim(std::uint64_t keep);

  /// Freed memory that others have reached is used again last. What nobody reaches any more becomes holes; what others
  /// hold references to goes back to the card, as whole handles whose work is done. True when there was any of either.
  bool regain(Effort effort);
  /// The same where much has gathered since the last time.
  bool regain_much() { return p_.space.retained_bytes() > much_retained() && regain(Effort::kAsk); }

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
  // What extend() is at: the block that needs memory, and what will be held if all that it lacks is taken.
  struct Aim {
    Granules block = 0;
    std::uint64_t held = 0;
  };
  struct Donor {
    Granules begin;
    Granules size;
  };

  Granules unit() const { return unit_; }
  Range area(Location location) const;
  Range tail(Location location) const;
  Granules missing_in(Range part) const;
  enum class Begin : std::uint8_t { kAnywhere, kAtHandle };  // kAtHandle: then whole handles are free when the block is
  Range choose_place(Granules size, const Request& request, Begin begins);
  bool can_fill(Range part);
  bool needs_pending(Range part);
  Range extend_given(Granules size);
  void collect_donors(Location location, Range except);
  bool fill(Range gap);
  bool lift(Granules begin, Handle& handle);
  bool lay(Granules begin, const Handle& handle);
  DriverAnswer take(std::uint64_t bytes, Handle& handle);
  void return_to_card(const Handle& handle);
  bool create(std::uint64_t bytes, Handle& handle);
  bool migrate_into(Granules place, Granules room, Granules& laid);
  bool recut_into(Granules place, Granules room, Granules& laid);
  bool grow_into(Granules place, Granules room, Granules& laid);
  std::uint64_t still_allowed() const;
  bool give_back(Granules begin);
  void give_back_overflow(Effort effort);
  enum class Rounding : std::uint8_t { kKeepMore, kKeepLess };  // where handles do not divide what is to be held
  std::uint64_t give_back_until(std::uint64_t held, Rounding rounding);
  std::uint64_t much_retained() const;
  std::uint64_t least_step(std::uint64_t held) const;
  std::uint64_t piece() const;
  void note_reserved();

  Parts p_;
  const Granules unit_;
  const Granules device_begin_;
  Location location_ = Location::kDevice;  // of the area that extend() is at work in
  Aim aim_;
  bool would_wait_ = false;    // the last extend()
  std::uint64_t allowed_ = 0;  // what could still be taken, asked once for each extension
  std::vector<Donor> donors_;
  std::uint64_t left_retained_ = 0;  // by the last regain()
  int error_ = 0;
};

}  // namespace gpupool
