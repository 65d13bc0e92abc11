// Time lines without a GPU: streams are numbers that know what they are ordered behind. For tests, and for replaying a
// trace. The test says what happens on the GPU (submit, complete) and asks whether an order holds; nothing runs by
// itself.
//
// How it knows: vector clocks (L. Lamport, "Time, clocks, and the ordering of events", 1978; C. Fidge and F. Mattern,
// 1988). A Point says for every stream up to which of its submissions. A record is the point its line has reached, a
// wait joins it into the waiting line's; so one stream is ordered behind work exactly if its own point includes it,
// over any number of steps. Owned by whoever makes it; called under its tape's lock, as every fence; tests ask from one
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "pool/fence.h"

namespace gpupool {

class MemoryFence final : public Fence {
 public:
  /// By index of the stream, in the order they were first seen: how many of its submissions. Missing ones are 0.
  using Point = std::vector<std::uint64_t>;

  struct Options {
    bool context_events = true;   // false: an old driver; a record of the whole context completes everything instead
    bool host_wait_helps = true;  // wait_on_host() completes the work as a GPU would in time; false: it times out
    std::uint32_t looks_until_done =
        0;  // a GPU works on while it is asked: so many looks at pending work; 0: it does not
    std::uint32_t max_events = ~std::uint32_t{0};
  };
  /// What it can be told to refuse, and counts.
  enum class Operation : std::uint8_t { kMakeEvent, kRecord, kWait, kQuery, kHostWait };

  explicit MemoryFence(const Options& options) : options_(options) {}
  MemoryFence() : MemoryFence(Options{}) {}

  EventId make_event() override;
  RecordResult record(StreamRef line, EventId event) override;
  bool wait(StreamRef line, EventId event) override;
  Progress query(EventId event) override;
  bool wait_on_host(EventId event, unsigned milliseconds) override;
  int take_error() override;

  /// The program submits one piece of work. The point that includes it and all it is ordered behind.
  Point submit(StreamRef stream);
  /// All that `stream` has been given so far, or (kWholeContext) all streams together.
  Point point_of(StreamRef line) const;
  /// The GPU has finished this work, and so all that it was ordered behind.
  void complete(const Point& point);

  /// Must later work of `stream` start after `point`, by waits alone?
  bool ordered_behind(StreamRef stream, const Point& point) const;
  /// The same, counting what is complete already: what a new owner on `stream` needs.
  bool safe_after(StreamRef stream, const Point& point) const;
  bool is_complete(const Point& point) const;

  /// The stream becomes part of an open capture, begun on it or carried into it.
  void begin_capture(StreamRef stream);
  void end_captures();

  /// From now on, the `nth` call (1 is the next) and those after it, `times` in all, are refused with `code`; one such
  /// order per operation.
  void refuse(Operation operation, std::uint64_t nth, int code, std::uint64_t times = 1);
  std::uint64_t calls(Operation operation) const { return calls_[index(operation)]; }

 private:
  struct Stream {
    Point reached;  // its own submissions included
    bool capturing = false;
  };
  struct Order {
    std::uint64_t call = 0;  // number of the first call to refuse
    std::uint64_t times = 0;
    int code = 0;
  };
  static constexpr std::size_t kOperations = 5;
  static std::size_t index(Operation operation) { return static_cast<std::size_t>(operation); }

  bool refused(Operation operation);
  std::size_t stream_index(StreamRef stream);
  const Stream* find(StreamRef stream) const;
  bool capturing() const;

  Options options_;
  std::map<StreamRef, std::size_t> indices_;
  std::vector<Stream> streams_;
  std::vector<Point> events_;
  std::uint32_t looks_ = 0;
  Point completed_;
  std::uint64_t calls_[kOperations] = {};
  Order orders_[kOperations];
  int error_ = 0;
};

}  // namespace gpupool
