#include "pool/growth.h"

#include <algorithm>
#include <bit>

namespace gpupool {
namespace {

// Handle sizes, see docs/decisions/0004-handle-sizes.md. A pool that grows takes small handles while it is small, so
// that free ones can move to where they are needed; one that is reserved up front takes few large ones.
constexpr std::uint64_t kFullSpeedPiece = std::uint64_t{32}
                                          << 20;                   // copies over handles of this size run at full speed
constexpr std::uint64_t kLargestPiece = std::uint64_t{128} << 20;  // larger ones are created no faster
constexpr std::uint64_t kPiecesHeld = 512;
constexpr std::uint64_t kPiecesReserved = 1024;
constexpr std::uint64_t kExactGrowthShare = 64;  // exact growth takes at most this part of what is held beyond the need

Granules round_up(Granules value, Granules unit) { return (value + unit - 1) & ~(unit - 1); }
Granules round_down(Granules value, Granules unit) { return value & ~(unit - 1); }

}  // namespace

Growth::Growth(const Parts& parts) : p_(parts), unit_(granules_for(parts.backing.granularity())) {}

std::uint64_t Growth::piece() const {
  if (p_.options.handle != 0) return p_.options.handle;
  if (p_.options.size != 0)
    return std::clamp(std::bit_ceil(p_.options.size / kPiecesReserved), kFullSpeedPiece, kLargestPiece);
  return std::clamp(std::bit_ceil(p_.handles.device_bytes() / kPiecesHeld), bytes_of(unit_), kFullSpeedPiece);
}

std::uint64_t Growth::least_step() const {
  std::uint64_t held = p_.handles.device_bytes();
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

void Growth::note_reserved() { p_.stats.reserved.set(p_.handles.device_bytes()); }

// How many granules would have to be mapped so that `part` is mapped throughout, in whole units.
Granules Growth::missing_in(Range part) const {
  Granules missing = 0;
  p_.space.visit_gaps({round_down(part.begin, unit_), round_up(part.end, unit_)},
                      [&](Range gap) { missing += gap.size(); });
  return missing;
}

Range Growth::choose_place(Granules size, const Request& request) {
  struct Candidate {
    Granules missing;
    Range part;
  };
  std::vector<Candidate> candidates;
  auto consider = [&](Granules begin) {
    Range part{begin, begin + size};
    candidates.push_back({missing_in(part), part});
  };
  Range tail = p_.space.last_gap();
  for (Range span = p_.space.span_with_gap_behind(0); !span.empty(); span = p_.space.span_with_gap_behind(span.end)) {
    if (span.size() < size) continue;
    consider(span.begin);
    if (span.end != tail.end) consider(span.end - size);
  }
  if (tail.size() >= size) consider(tail.begin);
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.missing != b.missing ? a.missing < b.missing : a.part.begin < b.part.begin;
  });
  for (const Candidate& candidate : candidates) {
    bool usable = p_.space.visit_holes(candidate.part, [&](const BestFit::Hole& hole) {
      return p_.reuse.usable(hole, candidate.part, request, Effort::kAsk);
    });
    if (usable) return candidate.part;
  }
  return {};
}

Range Growth::extend(Granules size, const Request& request) {
  if (p_.backing.placement() == Placement::kGiven) return extend_given(size);
  Range part = choose_place(size, request);
  if (part.empty()) return {};
  Granules missing = missing_in(part);
  collect_donors(part);
  std::uint64_t donated = 0;
  for (const Donor& donor : donors_) donated += bytes_of(donor.size);
  if (donated < bytes_of(missing) && donated + allowance() < bytes_of(missing)) return {};

  std::uint64_t held = p_.handles.device_bytes();
  std::vector<Range> gaps;
  p_.space.visit_gaps({round_down(part.begin, unit_), round_up(part.end, unit_)},
                      [&](Range gap) { gaps.push_back(gap); });
  for (Range gap : gaps) {
    if (!fill(gap)) return {};
  }
  if (std::uint64_t grown = p_.handles.device_bytes() - std::min(held, p_.handles.device_bytes()); grown > 0) {
    p_.stats.growth_steps.add(1);
    if (std::uint64_t step = least_step(); grown < step) {
      Range tail = p_.space.last_gap();
      Granules more = granules_for(std::min(step - grown, allowance()) / bytes_of(unit_) * bytes_of(unit_));
      Granules laid = 0;
      for (Granules at = tail.begin; more > 0 && more <= tail.end - at && grow_into(at, more, laid); at += laid)
        more -= laid;
    }
  }
  return part;
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
  Granules slab = granules_for(std::min(room, std::max(need, least_step())) / bytes_of(unit_) * bytes_of(unit_));
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

void Growth::collect_donors(Range except) {
  donors_.clear();
  for (Range hole = p_.space.best_fit(unit_); !hole.empty(); hole = p_.space.following(hole)) {
    p_.handles.visit_within(hole, [&](Granules begin, const Handle& handle) {
      Granules size = granules_for(handle.bytes);
      if (handle.location == Location::kDevice && !Range{begin, begin + size}.overlaps(except))
        donors_.push_back({begin, size});
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
    p_.backing.destroy(whole);
    Handle cut;
    Handle rest;
    if (!p_.backing.create(bytes_of(room), Location::kDevice, cut).ok() || !lay(place, cut)) return false;
    if (p_.backing.create(whole.bytes - cut.bytes, Location::kDevice, rest).ok() && lay(chosen.begin, rest)) {
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
  if (bytes > allowance() || !create(bytes, handle) || !lay(place, handle)) return false;
  laid = granules_for(bytes);
  return true;
}

bool Growth::create(std::uint64_t bytes, Handle& handle) {
  DriverAnswer answer = p_.backing.create(bytes, Location::kDevice, handle);
  if (!answer.ok()) {
    error_ = answer.code;
    return false;
  }
  p_.stats.growth_bytes.add(bytes);
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
  p_.space.hole_to_gap({begin, begin + granules_for(handle.bytes)});
  note_reserved();
  return true;
}

// Puts a handle on the tape; its place, a gap until now, becomes a clean hole. A handle that cannot be mapped goes back
// to the card.
bool Growth::lay(Granules begin, const Handle& handle) {
  DriverAnswer answer = p_.backing.map(handle, p_.addresses.address_of(begin));
  if (!answer.ok()) {
    error_ = answer.code;
    p_.backing.destroy(handle);
    return false;
  }
  p_.handles.add(begin, handle);
  p_.space.gap_to_hole({begin, begin + granules_for(handle.bytes)});
  note_reserved();
  return true;
}

std::uint64_t Growth::prefill(std::uint64_t bytes) {
  auto missing = [&] {
    std::uint64_t held = p_.handles.device_bytes();
    return p_.options.size > held ? p_.options.size - held : 0;
  };
  std::uint64_t target = missing() - std::min(missing(), bytes);
  while (missing() > target) {
    Granules laid = 0;
    std::uint64_t need = std::min(missing(), allowance()) / bytes_of(unit_) * bytes_of(unit_);
    if (need == 0) return 0;
    if (p_.backing.placement() == Placement::kGiven) {
      if (extend_given(granules_for(std::min(need, std::max(bytes, piece())))).empty()) return 0;
    } else {
      Range tail = p_.space.last_gap();
      if (tail.size() < granules_for(need) || !grow_into(tail.begin, granules_for(need), laid)) return 0;
    }
  }
  return missing();
}

bool Growth::give_back(Granules begin) {
  Handle handle;
  if (!lift(begin, handle)) return false;
  p_.backing.destroy(handle);
  if (p_.backing.placement() == Placement::kGiven) p_.addresses.remove(begin);
  p_.stats.trims.add(1);
  p_.stats.trimmed_bytes.add(handle.bytes);
  return true;
}

std::uint64_t Growth::give_back_until(std::uint64_t held, Rounding rounding) {
  std::uint64_t before = p_.handles.device_bytes();
  collect_donors({});
  std::sort(donors_.begin(), donors_.end(), [](const Donor& a, const Donor& b) { return a.begin > b.begin; });
  for (const Donor& donor : donors_) {
    if (p_.handles.device_bytes() <= held) break;
    if (rounding == Rounding::kKeepMore && p_.handles.device_bytes() - held < bytes_of(donor.size)) continue;
    if (p_.reuse.complete({donor.begin, donor.begin + donor.size}, Effort::kBlock)) give_back(donor.begin);
  }
  return before - p_.handles.device_bytes();
}

void Growth::release_all() {
  std::vector<Granules> places;
  p_.handles.visit_within({0, ~Granules{0}}, [&](Granules begin, const Handle&) { places.push_back(begin); });
  for (Granules begin : places) {
    Handle handle = p_.handles.remove(begin);
    p_.backing.unmap(handle, p_.addresses.address_of(begin));
    p_.backing.destroy(handle);
    if (p_.backing.placement() == Placement::kGiven) p_.addresses.remove(begin);
  }
  note_reserved();
}

}  // namespace gpupool
