#include "pool/growth.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace gpupool {
namespace {

// Handle sizes, see docs/decisions/0004-handle-sizes.md and 0023-between-the-block-and-the-pool.md. Each handle costs
// the driver some 40 us, to take it and to move it, whatever its size; but a large one is less often wholly free, so
// that it can move. A pool that grows takes them between the size of the block that needs them and a small share of
// what it holds; one that is reserved up front takes few large ones. Copies over handles of kFullSpeedPiece run at full
// speed; ones larger than kLargestPiece are created no faster.
constexpr std::uint64_t kFullSpeedPiece = std::uint64_t{32} << 20;
constexpr std::uint64_t kLargestPiece = std::uint64_t{128} << 20;
// Of so small a part of a block nearly all handles are wholly free when the block is, whatever their size.
constexpr std::uint64_t kSmallPartOfBlock = 64;
constexpr std::uint64_t kSmallShare = 16384;
constexpr std::uint64_t kMostPieces = 1024;
// What is held early is a small part of what will be: up to this, handles are those for so many times as much.
constexpr std::uint64_t kGrown = std::uint64_t{3} << 30;
constexpr std::uint64_t kYetToGrow = 4;
constexpr std::uint64_t kPiecesReserved = 1024;
// Exact growth takes at most this part of what is held beyond the need.
constexpr std::uint64_t kExactGrowthShare = 1024;
// What was freed while others reached it lies untouched as long as it is less than this, and this part of what is held.
constexpr std::uint64_t kLittleRetained = std::uint64_t{256} << 20;
constexpr std::uint64_t kRetainedShare = 16;
constexpr std::uint64_t kOwnHandles = std::uint64_t{64} << 20;  // blocks from here on begin with a handle of their own

Granules round_up(Granules value, Granules unit) { return (value + unit - 1) & ~(unit - 1); }
Granules round_down(Granules value, Granules unit) { return value & ~(unit - 1); }

Range common(Range a, Range b) {
  const Range both{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return both.begin < both.end ? both : Range{};
}

// Host memory moves within its area like the card's, so it gets some times the addresses that it could need, and one
// unit more that stays a gap: no hole reaches from one kind of memory into the other.
constexpr std::uint64_t kAddressesPerHostByte = 4;

Granules device_begin_for(const TapeOptions& options, Granules unit) {
  if (options.overflow == 0) return 0;
  return round_up(granules_for(std::min(options.overflow * kAddressesPerHostByte, options.address_space / 4)), unit) +
         unit;
}

}  // namespace

Growth::Growth(const Parts& parts)
    : p_(parts),
      unit_(granules_for(parts.backing.granularity())),
      device_begin_(device_begin_for(parts.options, unit_)) {}

Range Growth::area(Location location) const {
  if (location == Location::kHost) return {0, device_begin_ - std::min(device_begin_, unit_)};
  return {device_begin_, granules_for(p_.options.address_space)};
}

// The gap at the end of an area.
Range Growth::tail(Location location) const {
  if (location == Location::kDevice) return common(p_.space.last_gap(), area(location));
  Range last;
  p_.space.visit_gaps(area(location), [&](Range gap) { last = gap; });
  return last.end == area(location).end ? last : Range{};
}

std::uint64_t Growth::piece() const {
  if (location_ == Location::kHost) return kFullSpeedPiece;
  if (p_.options.handle != 0) return p_.options.handle;
  if (p_.options.size != 0)
    return std::clamp(std::bit_ceil(p_.options.size / kPiecesReserved), kFullSpeedPiece, kLargestPiece);
  // A block on n handles of h bytes costs n calls and strands some h: their sum is least where h grows with the root.
  const std::uint64_t expected = std::max(aim_.held, std::min(kYetToGrow * aim_.held, kGrown));
  const double balanced = std::sqrt(double(bytes_of(aim_.block)) * double(expected / kSmallShare));
  const auto size = std::max(static_cast<std::uint64_t>(balanced), aim_.held / kMostPieces);
  const std::uint64_t most =
      std::clamp(std::bit_floor(bytes_of(aim_.block) / kSmallPartOfBlock), kFullSpeedPiece, kLargestPiece);
  return std::clamp(std::bit_floor(size), bytes_of(unit_), most);
}

std::uint64_t Growth::least_step(std::uint64_t held) const {
  if (location_ == Location::kHost) return 0;
  std::uint64_t step = p_.options.growth_bytes;
  if (p_.options.growth_factor > 0)
    step = static_cast<std::uint64_t>(static_cast<double>(held) * p_.options.growth_factor);
  if (p_.options.exact_growth) step = std::min(step, held / kExactGrowthShare);
  return step;
}

std::uint64_t Growth::allowance() const {
  std::uint64_t held = p_.handles.device_bytes();
  std::uint64_t below_max = p_.options.max > held ? p_.options.max - held : 0;
  std::uint64_t free = p_.backing.card_memory().free;
  std::uint64_t above_headroom = free > p_.options.headroom ? free - p_.options.headroom : 0;
  return std::min(below_max, above_headroom) / bytes_of(unit_) * bytes_of(unit_);
}

std::uint64_t Growth::still_allowed() const {
  if (location_ == Location::kDevice) return allowance();
  std::uint64_t held = p_.handles.host_bytes();
  return p_.options.overflow > held ? (p_.options.overflow - held) / bytes_of(unit_) * bytes_of(unit_) : 0;
}

void Growth::note_reserved() {
  p_.stats.reserved.set(p_.handles.device_bytes());
  p_.stats.overflow.set(p_.handles.host_bytes());
}

// How many granules would have to be mapped so that `part` is mapped throughout, in whole units.
Granules Growth::missing_in(Range part) const {
  Granules missing = 0;
  p_.space.visit_gaps({round_down(part.begin, unit_), round_up(part.end, unit_)},
                      [&](Range gap) { missing += gap.size(); });
  return missing;
}

Range Growth::choose_place(Granules size, const Request& request, Begin begins) {
  struct Candidate {
    Granules missing;
    Range part;
  };
  std::vector<Candidate> candidates;
  auto consider = [&](Range span, Granules begin, Granules at_handle) {
    Range part{at_handle, at_handle + size};
    if (begins == Begin::kAnywhere || !span.contains(part)) part = {begin, begin + size};
    candidates.push_back({missing_in(part), part});
  };
  const Range whole = area(location_);
  for (Range run = p_.space.span_with_gap_behind(whole.begin); !run.empty() && run.begin < whole.end;
       run = p_.space.span_with_gap_behind(run.end)) {
    const Range span = common(run, whole);
    if (span.size() < size) continue;
    consider(span, span.begin, round_up(span.begin, unit_));
    if (span.end != whole.end) consider(span, span.end - size, round_down(span.end - size, unit_));
  }
  if (Range end = tail(location_); end.size() >= size) consider(end, end.begin, end.begin);
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.missing != b.missing ? a.missing < b.missing : a.part.begin < b.part.begin;
  });
  for (const Candidate& candidate : candidates) {
    bool usable = p_.space.visit_free(candidate.part, [&](const BestFit::Hole& hole) {
      return p_.reuse.usable(hole, candidate.part, request, Effort::kFence);
    });
    if (usable) return candidate.part;
  }
  return {};
}

Range Growth::extend(Granules size, const Request& request, Effort effort) {
  const Location location = request.location;
  if (p_.backing.placement() == Placement::kGiven) return location == Location::kDevice ? extend_given(size) : Range{};
  location_ = location;
  would_wait_ = false;
  allowed_ = still_allowed();
  Range part;
  if (bytes_of(size) >= kOwnHandles) part = choose_place(size, request, Begin::kAtHandle);
  if (part.empty() || !can_fill(part)) {
    part = choose_place(size, request, Begin::kAnywhere);
    if (part.empty() || !can_fill(part)) return {};
  }
  would_wait_ = effort < Effort::kBlock && needs_pending(part);
  if (would_wait_) return {};
  std::uint64_t held = p_.handles.bytes(location);
  std::vector<Range> gaps;
  p_.space.visit_gaps({round_down(part.begin, unit_), round_up(part.end, unit_)},
                      [&](Range gap) { gaps.push_back(gap); });
  aim_ = {size, held + bytes_of(missing_in(part))};
  for (Range gap : gaps) {
    if (!fill(gap)) return {};
  }
  if (location == Location::kHost) return part;
  if (std::uint64_t grown = p_.handles.device_bytes() - std::min(held, p_.handles.device_bytes()); grown > 0) {
    p_.stats.growth_steps.add(1);
    if (std::uint64_t step = least_step(held); grown < step) {
      Range end = tail(Location::kDevice);
      Granules more = granules_for(std::min(step - grown, allowed_) / bytes_of(unit_) * bytes_of(unit_));
      Granules laid = 0;
      for (Granules at = end.begin; more > 0 && more <= end.end - at && grow_into(at, more, laid); at += laid)
        more -= laid;
    }
    give_back_overflow(Effort::kAsk);  // the card has room again
  }
  return part;
}

// Is there enough that lies free elsewhere or may be taken? Lists what lies free.
bool Growth::can_fill(Range part) {
  const std::uint64_t missing = bytes_of(missing_in(part));
  collect_donors(location_, part);
  std::uint64_t donated = 0;
  for (const Donor& donor : donors_) donated += bytes_of(donor.size);
  return donated + allowed_ >= missing;
}

// Is work in flight on handles that are listed, and are the others not enough?
bool Growth::needs_pending(Range part) {
  const std::uint64_t missing = bytes_of(missing_in(part));
  std::uint64_t done = 0;
  std::uint64_t listed = 0;
  for (const Donor& donor : donors_) {
    const std::uint64_t bytes = bytes_of(donor.size);
    listed += bytes;
    if (done < missing && p_.reuse.complete({donor.begin, donor.begin + donor.size}, Effort::kAsk)) done += bytes;
  }
  return done < missing && done < listed;
}

// Memory that brings its own addresses: one slab per extension, set apart from others so that holes never join across
// slabs.
Range Growth::extend_given(Granules size) {
  std::uint64_t need = bytes_of(round_up(size, unit_));
  std::uint64_t room = allowance();
  if (room < need) {
    std::uint64_t held = p_.handles.device_bytes();
    give_back_until(held - std::min(held, need - room), Rounding::kKeepLess);
    room = allowance();
  }
  if (room < need) return {};
  Granules slab = granules_for(std::min(room, std::max(need, least_step(p_.handles.device_bytes()))) / bytes_of(unit_) *
                               bytes_of(unit_));
  Range place;
  p_.space.visit_gaps({0, ~Granules{0}}, [&](Range gap) {
    if (place.empty() && gap.size() / unit_ >= slab / unit_ + 2) place = {gap.begin + unit_, gap.begin + unit_ + slab};
  });
  Handle handle;
  if (place.empty() || !create(bytes_of(slab), handle)) return {};
  if (!p_.addresses.add(handle.address, handle.bytes, place.begin)) {
    p_.backing.destroy(handle);
    return {};
  }
  if (!lay(place.begin, handle)) {
    p_.addresses.remove(place.begin);
    return {};
  }
  p_.stats.growth_steps.add(1);
  return {place.begin, place.begin + size};
}

void Growth::collect_donors(Location location, Range except) {
  donors_.clear();
  for (Range hole = p_.space.best_fit(unit_); !hole.empty(); hole = p_.space.following(hole)) {
    p_.handles.visit_within(hole, [&](Granules begin, const Handle& handle) {
      Granules size = granules_for(handle.bytes);
      if (handle.location == location && !Range{begin, begin + size}.overlaps(except)) donors_.push_back({begin, size});
    });
  }
  std::sort(donors_.begin(), donors_.end(),
            [](const Donor& a, const Donor& b) { return a.size != b.size ? a.size > b.size : a.begin > b.begin; });
}

// Migrate before growing: nothing is taken from the card while a handle lies free.
bool Growth::fill(Range gap) {
  for (Granules laid = 0; gap.begin < gap.end; gap.begin += laid) {
    if (!migrate_into(gap.begin, gap.size(), laid) && !recut_into(gap.begin, gap.size(), laid) &&
        !grow_into(gap.begin, gap.size(), laid)) {
      return false;
    }
  }
  return true;
}

bool Growth::migrate_into(Granules place, Granules room, Granules& laid) {
  for (Effort effort : {Effort::kAsk, Effort::kBlock}) {
    for (auto donor = donors_.begin(); donor != donors_.end(); ++donor) {
      if (donor->size > room || !p_.reuse.complete({donor->begin, donor->begin + donor->size}, effort)) continue;
      Donor chosen = *donor;
      donors_.erase(donor);
      Handle handle;
      if (!lift(chosen.begin, handle) || !lay(place, handle)) return false;
      p_.stats.migrations.add(1);
      p_.stats.migrated_bytes.add(handle.bytes);
      laid = chosen.size;
      return true;
    }
  }
  return false;
}

// All free handles are too large: cut the smallest of them, which takes nothing from the card.
bool Growth::recut_into(Granules place, Granules room, Granules& laid) {
  for (auto donor = donors_.rbegin(); donor != donors_.rend(); ++donor) {
    if (donor->size <= room || !p_.reuse.complete({donor->begin, donor->begin + donor->size}, Effort::kBlock)) continue;
    Donor chosen = *donor;
    donors_.erase(std::next(donor).base());
    Handle whole;
    if (!lift(chosen.begin, whole)) return false;
    return_to_card(whole);
    Handle cut;
    Handle rest;
    if (!take(bytes_of(room), cut).ok() || !lay(place, cut)) return false;
    if (take(whole.bytes - cut.bytes, rest).ok() && lay(chosen.begin, rest)) {
      Donor smaller{chosen.begin, granules_for(rest.bytes)};
      donors_.insert(std::upper_bound(donors_.begin(), donors_.end(), smaller,
                                      [](const Donor& a, const Donor& b) { return a.size > b.size; }),
                     smaller);
    }
    p_.stats.migrations.add(1);
    p_.stats.migrated_bytes.add(cut.bytes);
    laid = room;
    return true;
  }
  return false;
}

bool Growth::grow_into(Granules place, Granules room, Granules& laid) {
  std::uint64_t bytes = std::min(bytes_of(room), piece());
  Handle handle;
  if (bytes > allowed_ || !create(bytes, handle) || !lay(place, handle)) return false;
  laid = granules_for(bytes);
  return true;
}

DriverAnswer Growth::take(std::uint64_t bytes, Handle& handle) {
  const DriverAnswer answer = p_.backing.create(bytes, location_, handle);
  if (answer.ok()) allowed_ -= std::min(allowed_, bytes);
  return answer;
}

void Growth::return_to_card(const Handle& handle) {
  p_.backing.destroy(handle);
  allowed_ += handle.bytes;
}

bool Growth::create(std::uint64_t bytes, Handle& handle) {
  const DriverAnswer answer = take(bytes, handle);
  if (!answer.ok()) {
    error_ = answer.code;
    return false;
  }
  if (location_ == Location::kDevice) p_.stats.growth_bytes.add(bytes);
  return true;
}

// Takes a wholly free handle off the tape; its place becomes a gap.
bool Growth::lift(Granules begin, Handle& handle) {
  handle = p_.handles.remove(begin);
  DriverAnswer answer = p_.backing.unmap(handle, p_.addresses.address_of(begin));
  if (!answer.ok()) {
    error_ = answer.code;
    p_.handles.add(begin, handle);
    return false;
  }
  p_.space.free_to_gap({begin, begin + granules_for(handle.bytes)});
  note_reserved();
  return true;
}

// Puts a handle on the tape; its place, a gap until now, becomes a clean hole. A handle that cannot be mapped goes back
// to the card.
bool Growth::lay(Granules begin, const Handle& handle) {
  DriverAnswer answer = p_.backing.map(handle, p_.addresses.address_of(begin));
  if (!answer.ok()) {
    error_ = answer.code;
    return_to_card(handle);
    return false;
  }
  p_.handles.add(begin, handle);
  p_.space.gap_to_hole({begin, begin + granules_for(handle.bytes)});
  note_reserved();
  return true;
}

std::uint64_t Growth::prefill(std::uint64_t bytes) {
  location_ = Location::kDevice;
  auto missing = [&] {
    std::uint64_t held = p_.handles.device_bytes();
    return p_.options.size > held ? p_.options.size - held : 0;
  };
  std::uint64_t target = missing() - std::min(missing(), bytes);
  while (missing() > target) {
    Granules laid = 0;
    allowed_ = allowance();
    std::uint64_t need = std::min(missing(), allowed_) / bytes_of(unit_) * bytes_of(unit_);
    if (need == 0) return 0;
    if (p_.backing.placement() == Placement::kGiven) {
      if (extend_given(granules_for(std::min(need, std::max(bytes, piece())))).empty()) return 0;
    } else {
      Range end = tail(Location::kDevice);
      if (end.size() < granules_for(need) || !grow_into(end.begin, granules_for(need), laid)) return 0;
    }
  }
  return missing();
}

bool Growth::give_back(Granules begin) {
  Handle handle;
  if (!lift(begin, handle)) return false;
  p_.backing.destroy(handle);
  if (p_.backing.placement() == Placement::kGiven) p_.addresses.remove(begin);
  if (handle.location == Location::kHost) return true;
  p_.stats.trims.add(1);
  p_.stats.trimmed_bytes.add(handle.bytes);
  return true;
}

std::uint64_t Growth::much_retained() const {
  return 2 * left_retained_ + std::max(kLittleRetained, p_.handles.device_bytes() / kRetainedShare);
}

bool Growth::regain(Effort effort) {
  if (p_.space.retained_bytes() == 0) return false;
  bool any = p_.space.regain_ended();
  const auto leaves = [this](Sharing sharing) {
    // A slab that is freed is gone for those who have it open; the driver says so of its own.
    if (sharing == Sharing::kAnnounced) return p_.backing.placement() == Placement::kChosen;
    return sharing != Sharing::kFixed;
  };
  std::vector<Range> leaving;
  Granules looked_at = 0;
  for (Range kept = p_.space.retained_from(0); !kept.empty(); kept = p_.space.retained_from(kept.end)) {
    p_.handles.visit_below(kept, [&](Granules begin, const Handle& handle) {
      const Range whole{begin, begin + granules_for(handle.bytes)};
      if (begin >= looked_at && p_.space.may_leave(whole, leaves)) leaving.push_back(whole);
      looked_at = whole.end;
      return true;
    });
  }
  for (const Range& handle : leaving) any |= p_.reuse.complete(handle, effort) && give_back(handle.begin);
  left_retained_ = p_.space.retained_bytes();
  return any;
}

void Growth::give_back_overflow(Effort effort) {
  if (p_.handles.host_bytes() == 0) return;
  collect_donors(Location::kHost, {});
  for (const Donor& donor : donors_) {
    if (p_.reuse.complete({donor.begin, donor.begin + donor.size}, effort)) give_back(donor.begin);
  }
}

std::uint64_t Growth::trim(std::uint64_t keep) {
  const std::uint64_t before = p_.handles.device_bytes();
  give_back_overflow(Effort::kBlock);
  regain(Effort::kBlock);
  give_back_until(keep, Rounding::kKeepMore);
  return before - p_.handles.device_bytes();
}

std::uint64_t Growth::give_back_until(std::uint64_t held, Rounding rounding) {
  std::uint64_t before = p_.handles.device_bytes();
  collect_donors(Location::kDevice, {});
  std::sort(donors_.begin(), donors_.end(), [](const Donor& a, const Donor& b) { return a.begin > b.begin; });
  for (const Donor& donor : donors_) {
    if (p_.handles.device_bytes() <= held) break;
    if (rounding == Rounding::kKeepMore && p_.handles.device_bytes() - held < bytes_of(donor.size)) continue;
    if (p_.reuse.complete({donor.begin, donor.begin + donor.size}, Effort::kBlock)) give_back(donor.begin);
  }
  return before - p_.handles.device_bytes();
}

void Growth::release_all() {
  while (!p_.handles.empty()) {
    const Granules begin = p_.handles.first();
    Handle handle = p_.handles.remove(begin);
    p_.backing.unmap(handle, p_.addresses.address_of(begin));
    p_.backing.destroy(handle);
    if (p_.backing.placement() == Placement::kGiven) p_.addresses.remove(begin);
  }
  note_reserved();
}

}  // namespace gpupool
