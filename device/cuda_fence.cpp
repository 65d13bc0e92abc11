// See cuda_fence.h.
#include "device/cuda_fence.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>
#include <utility>

#include "device/context.h"

namespace gpupool {
namespace {

CUstream stream_of(StreamRef line) { return reinterpret_cast<CUstream>(line); }

/// "A capture forbids it", be it one that no hook saw begin.
bool is_capture_refusal(int code) {
  return code >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && code <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

template <typename Call>
CUresult relaxed(const DriverApi& api, Call call) {
  const RelaxedCaptureGuard guard(api);
  return guard.ok() ? call() : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

}  // namespace

CudaFence::CudaFence(const DriverApi& api, const Captures& captures, CUcontext owner)
    : api_(api), captures_(captures), context_events_(api.has_context_events()), reaches_{{owner, {}}} {}

EventId CudaFence::make_event() try {
  const std::size_t count = recorded_in_.size() + 1;
  recorded_in_.reserve(count);
  for (Reach& reach : reaches_) {
    const CUresult result = make_events(reach, count);
    if (result != CUDA_SUCCESS) {
      note(result);
      return kNoEvent;
    }
  }
  recorded_in_.push_back(kNowhere);
  return static_cast<EventId>(count - 1);
} catch (const std::bad_alloc&) {
  return kNoEvent;
}

RecordResult CudaFence::record(StreamRef line, EventId event) {
  const bool whole = line == kWholeContext;
  const CUresult result = whole ? record_whole_context(event) : record_stream(stream_of(line), event);
  if (result == CUDA_SUCCESS) return whole && !context_events_ ? RecordResult::kComplete : RecordResult::kRecorded;
  if (is_capture_refusal(result)) return RecordResult::kNotNow;
  note(result);
  return RecordResult::kFailed;
}

bool CudaFence::wait(StreamRef stream, EventId event) {
#ifdef GPUPOOL_TEST_NO_FENCES  // tests/gpu compiles this file once more, to show what reuse without fences does
  return true;
#endif
  const CUresult result = wait_stream(stream_of(stream), event);
  if (result != CUDA_SUCCESS && !is_capture_refusal(result)) note(result);
  return result == CUDA_SUCCESS;
}

Progress CudaFence::query(EventId event) {
#ifdef GPUPOOL_TEST_NO_FENCES
  return Progress::kDone;
#endif
  const auto ask = [&] {
    return for_each_recorded(event, [this](CUevent recorded) { return api_.cuEventQuery(recorded); });
  };
  const CUresult result = captures_.any_open() ? relaxed(api_, ask) : ask();
  if (result == CUDA_SUCCESS) return Progress::kDone;
  if (result == CUDA_ERROR_NOT_READY) return Progress::kPending;
  if (!is_capture_refusal(result)) note(result);
  return Progress::kUnknown;
}

bool CudaFence::wait_on_host(EventId event, unsigned milliseconds) {
  using std::chrono::microseconds;
  constexpr microseconds kLongestNap{500};
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  Progress progress = query(event);
  for (microseconds nap{10}; progress == Progress::kPending && std::chrono::steady_clock::now() < end;) {
    std::this_thread::sleep_for(nap);
    nap = std::min(2 * nap, kLongestNap);
    progress = query(event);
  }
  return progress == Progress::kDone;
}

int CudaFence::take_error() { return std::exchange(error_, 0); }

/// Without context events the work is over when this returns; so no event stands for it.
CUresult CudaFence::record_whole_context(EventId event) {
  if (captures_.any_open()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  for (const Reach& reach : reaches_) {
    CUresult result = CUDA_SUCCESS;
    if (context_events_) {
      result = api_.cuCtxRecordEvent(reach.context, reach.events[event]);
    } else {
      const ContextGuard current(api_, reach.context);
      result = current.ok() ? api_.cuCtxSynchronize() : current.result();
    }
    if (result != CUDA_SUCCESS) return result;
  }
  recorded_in_[event] = context_events_ ? kEverywhere : kNowhere;
  return CUDA_SUCCESS;
}

CUresult CudaFence::record_stream(CUstream stream, EventId event) {
  return on_stream(stream, [&] {
    Place place = reaches_.size() == 1 ? kOwner : place_of(stream);
    if (place == kNowhere) return CUDA_ERROR_INVALID_CONTEXT;
    CUresult result = api_.cuEventRecord(reaches_[place].events[event], stream);
    // The driver's way to say that the stream is of another context: one that no one told us of yet.
    if (result == CUDA_ERROR_INVALID_HANDLE && reaches_.size() == 1) {
      place = place_of(stream);
      if (place != kOwner && place != kNowhere) result = api_.cuEventRecord(reaches_[place].events[event], stream);
    }
    if (result == CUDA_SUCCESS) recorded_in_[event] = place;
    return result;
  });
}

CUresult CudaFence::wait_stream(CUstream stream, EventId event) {
  return on_stream(stream, [&] {
    const auto wait_here = [&](CUevent recorded) { return api_.cuStreamWaitEvent(stream, recorded, 0); };
    return for_each_recorded(event, wait_here);
  });
}

/// Makes a call on a stream that no open capture may have, and where the stream means what the StreamRef says.
template <typename Call>
CUresult CudaFence::on_stream(CUstream stream, Call call) {
  const auto outside_captures = [&] {
    const bool forbidden = captures_.any_open() && is_capturing(api_, stream);
    return forbidden ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : call();
  };
  if (!is_default_stream(stream)) return outside_captures();
  const ContextGuard current(api_, reaches_[kOwner].context);
  return current.ok() ? outside_captures() : current.result();
}

/// Calls for the events that stand for the EventId, until one does not answer CUDA_SUCCESS.
template <typename Call>
CUresult CudaFence::for_each_recorded(EventId event, Call call) {
  const Place place = recorded_in_[event];
  if (place == kNowhere) return CUDA_SUCCESS;
  if (place != kEverywhere) return call(reaches_[place].events[event]);
  for (const Reach& reach : reaches_) {
    const CUresult result = call(reach.events[event]);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

/// The context of a stream, which joins those that reach the memory if it is new. kNowhere: the driver refused.
CudaFence::Place CudaFence::place_of(CUstream stream) {
  if (is_default_stream(stream)) return kOwner;
  const StreamHome home = home_of(api_, stream);
  if (home.result != CUDA_SUCCESS || !add_context(home.context)) return kNowhere;
  const auto here = [&](const Reach& reach) { return reach.context == home.context; };
  return static_cast<Place>(std::find_if(reaches_.begin(), reaches_.end(), here) - reaches_.begin());
}

bool CudaFence::add_context(CUcontext context) try {
  const auto here = [&](const Reach& reach) { return reach.context == context; };
  if (std::any_of(reaches_.begin(), reaches_.end(), here)) return true;
  reaches_.reserve(reaches_.size() + 1);
  Reach reach{context, {}};
  const CUresult result = make_events(reach, recorded_in_.size());
  if (result == CUDA_SUCCESS) {
    reaches_.push_back(std::move(reach));
  } else {
    note(result);
    destroy_events(reach);
  }
  return result == CUDA_SUCCESS;
} catch (const std::bad_alloc&) {
  return false;
}

void CudaFence::remove_context(CUcontext context) {
  const auto here = [&](const Reach& reach) { return reach.context == context; };
  const auto found = std::find_if(reaches_.begin() + 1, reaches_.end(), here);
  if (found == reaches_.end()) return;
  const auto removed = static_cast<Place>(found - reaches_.begin());
  destroy_events(*found);
  reaches_.erase(found);
  for (Place& place : recorded_in_) {
    if (place == removed) {
      place = kNowhere;
    } else if (place > removed && place < kNowhere) {
      --place;
    }
  }
}

std::vector<CUcontext> CudaFence::contexts() const {
  std::vector<CUcontext> all;
  for (const Reach& reach : reaches_) all.push_back(reach.context);
  return all;
}

void CudaFence::close() {
  for (Reach& reach : reaches_) destroy_events(reach);
}

CUresult CudaFence::make_events(Reach& reach, std::size_t count) {
  const ContextGuard current(api_, reach.context);
  if (!current.ok()) return current.result();
  reach.events.reserve(count);
  while (reach.events.size() < count) {
    CUevent made = nullptr;
    const CUresult result = api_.cuEventCreate(&made, CU_EVENT_DISABLE_TIMING);
    if (result != CUDA_SUCCESS) return result;
    reach.events.push_back(made);
  }
  return CUDA_SUCCESS;
}

void CudaFence::destroy_events(Reach& reach) {
  for (CUevent event : reach.events) api_.cuEventDestroy_v2(event);
  reach.events.clear();
}

/// Keeps the refusal for take_error(). A lost context is not forgotten for a lesser trouble.
void CudaFence::note(CUresult refusal) {
  if (!is_sticky(static_cast<CUresult>(error_))) error_ = refusal;
}

}  // namespace gpupool
