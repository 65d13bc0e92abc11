// What the pool asks of a GPU's own time lines: make a record, wait for one, look whether one is complete.
// device/ implements it with events (cuEventRecord / cuCtxRecordEvent and their waits); tests implement it in memory.
// Called under the tape's lock. Only wait_on_host() may block. Nothing throws.
#pragma once

#include <cstdint>

namespace gpupool {

/// A time line: one stream of the program (its handle, opaque here) or the whole context.
/// The same stream has the same value for as long as it lives; a destroyed stream's value may be used again for
/// another.
using StreamRef = std::uint64_t;
constexpr StreamRef kWholeContext = ~std::uint64_t{0};

/// Names an event object of the fence. Events are made once, recorded many times, never destroyed before the fence is.
using EventId = std::uint32_t;
constexpr EventId kNoEvent = ~EventId{0};

enum class RecordResult : std::uint8_t {
  kRecorded,  // the event now stands for all work submitted so far on that time line
  kComplete,  // nothing to wait for: the work is already done (also: the driver has no such events and the host waited
              // instead)
  kNotNow,    // a stream capture forbids it: try again when the capture has ended
  kFailed,    // the driver refused; take_error() says how
};

enum class Progress : std::uint8_t { kDone, kPending, kUnknown };

class Fence {
 public:
  virtual ~Fence() = default;

  /// A fresh event, or kNoEvent when the driver has none left.
  virtual EventId make_event() = 0;

  /// Records all work submitted so far on `line`. For kWholeContext: in every context that can reach this memory.
  virtual RecordResult record(StreamRef line, EventId event) = 0;

  /// Makes all later work of `stream`, never of the whole context, wait on the device for what `event` recorded. False:
  /// refused (take_error(), or a capture forbids it).
  virtual bool wait(StreamRef stream, EventId event) = 0;

  /// Is what `event` recorded complete? kUnknown when asking fails. A capture does not forbid it.
  virtual Progress query(EventId event) = 0;

  /// Blocks the calling thread until complete or `milliseconds` have passed; true when complete.
  virtual bool wait_on_host(EventId event, unsigned milliseconds) = 0;

  /// The driver's number of the last refusal, 0 if none since the last call; a sticky context error must come out of
  /// the program's own call.
  virtual int take_error() = 0;
};

}  // namespace gpupool
