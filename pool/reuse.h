// Reuse: the decision whether part of a hole may be handed out, joining which fragments it covers (best_fit) with what
// is known of their records (timelines). The only place that puts a fence before a new owner. Owned by the tape, under
// its lock.
#pragma once

#include <cstdint>

#include "pool/best_fit.h"
#include "pool/tape_types.h"
#include "pool/timelines.h"

namespace gpupool {

/// How far to go for a part of a hole, each step including those before it.
enum class Effort : std::uint8_t {
  kLook,   // take it only if nothing need be done
  kAsk,    // ask the driver whether records are complete
  kFence,  // put waits on the device
  kBlock,  // wait on the host for records, while patience lasts
};

class Reuse {
 public:
  Reuse(BestFit& space, Timelines& timelines) : space_(space), timelines_(timelines) {}

  /// May `part` of `hole` go to `request`? Puts the waits that are needed and allowed by `effort`.
  bool ready(const BestFit::Hole& hole, Range part, const Request& request, Effort effort) {
    return needs_nothing(hole, request) || make_ready(hole, part, request, effort);
  }

  /// Is all of `hole` clean or, as nearly always, freed by the requester itself? False: look closer.
  bool needs_nothing(const BestFit::Hole& hole, const Request& request) const {
    const History history = hole.history;
    return history.clean() ||
           (history.whole() && timelines_.need(request, history.line(), history.record()) == Need::kNothing);
  }

  /// Could ready() succeed? Asks the driver where `effort` allows, but puts no wait.
  bool usable(const BestFit::Hole& hole, Range part, const Request& request, Effort effort) {
    return blocked_until(hole, part, request, effort) == 0;
  }

  /// The first `size` granules of `hole` that may go to `request`, passing over fragments that must be complete and are
  /// not; empty when there are none. Waits are put as in ready().
  Range first_ready(const BestFit::Hole& hole, Granules size, const Request& request, Effort effort);

  /// The newest of the caller's plain frees, and of those before it, that stands between `part` and `request`; 0 when
  /// something else does.
  std::uint64_t own_free_before(const BestFit::Hole& hole, Range part, const Request& request);

  /// Is every fragment of what is free in `range` known complete, so that the memory may be unmapped? `effort` is kAsk
  /// or kBlock.
  bool complete(Range range, Effort effort);

 private:
  bool make_ready(const BestFit::Hole& hole, Range part, const Request& request, Effort effort);
  // Where the first fragment of `part` that cannot be used ends; 0 when all can.
  Granules blocked_until(const BestFit::Hole& hole, Range part, const Request& request, Effort effort);
  bool known_complete(const Fragment& fragment, Effort effort);

  BestFit& space_;
  Timelines& timelines_;
};

}  // namespace gpupool
