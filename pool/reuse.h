// Reuse: the decision whether part of a hole may be handed out, joining which fragments it covers (best_fit) with what is known of their
// records (timelines). The only place that puts a fence before a new owner.
// Owned by the tape, under its lock.
#pragma once

#include <cstdint>

#include "pool/best_fit.h"
#include "pool/tape_types.h"
#include "pool/timelines.h"

namespace gpupool {

/// How far to go for a part of a hole, each step including those before it.
enum class Effort : std::uint8_t {
  kLook,   // take it only if nothing need be done
  kFence,  // put waits on the device
  kAsk,    // ask the driver whether records are complete
  kBlock,  // wait on the host for them
};

class Reuse {
 public:
  Reuse(BestFit& space, Timelines& timelines) : space_(space), timelines_(timelines) {}

  /// May `part` of `hole` go to `request`? Puts the waits that are needed and allowed by `effort`.
  bool ready(const BestFit::Hole& hole, Range part, const Request& request, Effort effort, unsigned milliseconds = 0);

  /// Is every fragment of the holes in `range` known complete, so that the memory may be unmapped? Asks the driver; with
  /// `milliseconds` above 0 also waits on the host.
  bool complete(Range range, unsigned milliseconds);

 private:
  BestFit& space_;
  Timelines& timelines_;
};

}  // namespace gpupool
