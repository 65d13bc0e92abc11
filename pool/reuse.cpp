#include "pool/reuse.h"

#include <algorithm>

namespace gpupool {

namespace {

constexpr unsigned kMostPassedOver = 16;  // fragments passed over in one hole before growing instead

}  // namespace

bool Reuse::known_complete(const Fragment& fragment, Effort effort) {
  if (effort == Effort::kBlock) return timelines_.wait_on_host(fragment.line, fragment.record);
  return effort >= Effort::kAsk && timelines_.complete(fragment.line, fragment.record);
}

bool Reuse::make_ready(const BestFit::Hole& hole, Range part, const Request& request, Effort effort) {
  // First what needs no wait, so that a refusal costs nobody one; then one wait per line, for its newest record among
  // the fragments.
  bool waits_needed = false;
  bool possible = space_.visit_history(hole, part, [&](const Fragment& fragment) {
    switch (timelines_.need(request, fragment.line, fragment.record)) {
      case Need::kNothing:
        return true;
      case Need::kWait:
        if (known_complete(fragment, std::min(effort, Effort::kAsk))) return true;
        waits_needed = true;
        return effort >= Effort::kFence;
      case Need::kCompletion:
        return known_complete(fragment, effort);
    }
    return false;
  });
  if (!possible || !waits_needed) return possible;

  return space_.visit_history(hole, part, [&](const Fragment& fragment) {
    if (timelines_.need(request, fragment.line, fragment.record) == Need::kNothing) return true;
    std::uint64_t newest = fragment.record;
    space_.visit_history(hole, part, [&](const Fragment& other) {
      if (other.line == fragment.line && other.record > newest &&
          timelines_.need(request, other.line, other.record) == Need::kWait) {
        newest = other.record;
      }
      return true;
    });
    return timelines_.wait(request.line, fragment.line, newest) || known_complete(fragment, effort);
  });
}

Granules Reuse::blocked_until(const BestFit::Hole& hole, Range part, const Request& request, Effort effort) {
  Granules end = 0;
  space_.visit_history(hole, part, [&](const Fragment& fragment) {
    const Need need = timelines_.need(request, fragment.line, fragment.record);
    const bool stands = need == Need::kCompletion || (need == Need::kWait && effort < Effort::kFence);
    const bool blocked = stands && !known_complete(fragment, effort);
    if (blocked) end = fragment.range.end;
    return !blocked;
  });
  return end;
}

Range Reuse::first_ready(const BestFit::Hole& hole, Granules size, const Request& request, Effort effort) {
  Range part{hole.range.begin, hole.range.begin + size};
  for (unsigned passed = 0; passed < kMostPassedOver && part.end <= hole.range.end; ++passed) {
    Granules behind = blocked_until(hole, part, request, effort);
    if (behind == 0) return ready(hole, part, request, effort) ? part : Range{};
    part = {behind, behind + size};
  }
  return {};
}

std::uint64_t Reuse::own_free_before(const BestFit::Hole& hole, Range part, const Request& request) {
  std::uint64_t newest = 0;
  bool only_own = space_.visit_history(hole, part, [&](const Fragment& fragment) {
    if (timelines_.need(request, fragment.line, fragment.record) == Need::kNothing) return true;
    newest = std::max(newest, fragment.record);
    return fragment.line == kContextLine && fragment.record <= request.own_free;
  });
  return only_own ? newest : 0;
}

bool Reuse::complete(Range range, Effort effort) {
  return space_.visit_free(range, [&](const BestFit::Hole& hole) {
    return space_.visit_history(hole, range,
                                [&](const Fragment& fragment) { return known_complete(fragment, effort); });
  });
}

}  // namespace gpupool
