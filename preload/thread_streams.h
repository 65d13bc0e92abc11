// Gives the per-thread default stream a name of its own in each thread. The driver knows it by one handle,
// CU_STREAM_PER_THREAD, that means another stream in every thread; to a tape these are different time lines. A
// StreamRef with the top bit set is the serial number of a thread, and only that thread asks for it, so the fence below
// may take it for the driver's handle.
#pragma once

#include "pool/fence.h"

namespace gpupool {

constexpr StreamRef kThreadStream = StreamRef{1} << 63;  // no address of a stream object has this bit

class ThreadStreams final : public Fence {
 public:
  /// `per_thread_handle` is what the fence below calls the calling thread's default stream.
  ThreadStreams(Fence& below, StreamRef per_thread_handle) : below_(below), handle_(per_thread_handle) {}

  EventId make_event() override { return below_.make_event(); }
  RecordResult record(StreamRef line, EventId event) override { return below_.record(plain(line), event); }
  bool wait(StreamRef line, EventId event) override { return below_.wait(plain(line), event); }
  Progress query(EventId event) override { return below_.query(event); }
  bool wait_on_host(EventId event, unsigned milliseconds) override { return below_.wait_on_host(event, milliseconds); }
  int take_error() override { return below_.take_error(); }

 private:
  StreamRef plain(StreamRef line) const { return line != kWholeContext && (line & kThreadStream) ? handle_ : line; }

  Fence& below_;
  const StreamRef handle_;
};

}  // namespace gpupool
