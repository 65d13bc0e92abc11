// The GPU's time lines as CUDA has them: records and waits of streams and of whole contexts, by events.
// One per tape, called under that tape's lock, which add_context() and the like need too (Tape::hold).
// With one context that can reach the memory, the normal case, every record, wait and query is one driver call, without
// heap or lock. (Default streams cost a look at the current context more.) With several, one EventId stands for an
// event in each.
//
// A StreamRef is the CUstream handle. Default streams (CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, null) are those of the
// owning context, and the per-thread one is that of the calling thread. What is done on the default stream of another
// context, or of a green one, has no StreamRef: it belongs to kWholeContext.
#pragma once

#include <vector>

#include "device/captures.h"
#include "device/driver_api.h"
#include "pool/fence.h"

namespace gpupool {

class CudaFence final : public Fence {
 public:
  /// `owner` is the tape's context, regular, not green. All three must outlive the fence.
  CudaFence(const DriverApi& api, const Captures& captures, CUcontext owner);

  EventId make_event() override;
  RecordResult record(StreamRef line, EventId event) override;
  bool wait(StreamRef stream, EventId event) override;
  Progress query(EventId event) override;
  bool wait_on_host(EventId event, unsigned milliseconds) override;
  int take_error() override;

  /// Another context can reach the memory from now on: a peer device's, or a further one on the card. False: the driver
  /// refused. Must be told before that context's first work on the memory. Twice is once.
  bool add_context(CUcontext context);
  /// It cannot any more: peer access was switched off, or the context is about to be destroyed and its work is done.
  void remove_context(CUcontext context);

  /// The owner and every other context that can reach the memory.
  std::vector<CUcontext> contexts() const;

  /// Destroys the events, while the owning context still lives; afterwards nothing but the destructor may be called.
  /// The destructor makes no driver call: at exit and after a reset the events are gone with their context.
  void close();

 private:
  // The events of one context, by EventId.
  struct Reach {
    CUcontext context = nullptr;
    std::vector<CUevent> events;
  };
  // Where an EventId was last recorded: in every context, only in that of a stream (an index of reaches_), or never
  // yet.
  using Place = std::uint32_t;
  static constexpr Place kOwner = 0;
  static constexpr Place kEverywhere = ~Place{0};
  static constexpr Place kNowhere = kEverywhere - 1;

  CUresult record_whole_context(EventId event);
  CUresult record_stream(CUstream stream, EventId event);
  CUresult wait_stream(CUstream stream, EventId event);
  template <typename Call>
  CUresult on_stream(CUstream stream, Call call);
  template <typename Call>
  CUresult for_each_recorded(EventId event, Call call);
  Place place_of(CUstream stream);
  CUresult make_events(Reach& reach, std::size_t count);
  void destroy_events(Reach& reach);
  void note(CUresult refusal);

  const DriverApi& api_;
  const Captures& captures_;
  const bool context_events_;
  int error_ = 0;
  std::vector<Reach> reaches_;      // the owner first, then the others
  std::vector<Place> recorded_in_;  // by EventId
};

}  // namespace gpupool
