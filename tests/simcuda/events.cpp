// Events: a record stands for an operation (or for all of a context), later records of the same event do not change
// what an earlier wait refers to. Inside a capture a record is a set of graph nodes instead.
#include "tests/simcuda/call.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/faults.h"
#include "tests/simcuda/mempool.h"
#include "tests/simcuda/scheduler.h"
#include "tests/simcuda/shared_event.h"
#include "tests/simcuda/streams.h"

namespace gpupool::sim {
namespace {

CUresult find_event(CUevent event) {
  if (!state().events.valid(event)) return CUDA_ERROR_INVALID_HANDLE;
  return root_of(*event->context).error;
}

CUresult create(CUevent* out, unsigned flags) {
  Context* context = nullptr;
  if (const CUresult e = current_context(context)) return e;
  constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  if (!out || flags & ~kKnown) return CUDA_ERROR_INVALID_VALUE;
  *out = state().events.make();
  (*out)->context = context;
  (*out)->flags = flags;
  return CUDA_SUCCESS;
}

CUresult destroy(CUevent event) {
  if (!state().events.valid(event)) return CUDA_ERROR_INVALID_HANDLE;
  state().events.drop(event);
  return CUDA_SUCCESS;
}

void set_record(CUevent event, OpRef op) {
  event->record = take_never_completes() ? never_done(*event->context) : std::move(op);
  event->capture.reset();
  event->capture_nodes.clear();
  event->polls = 0;
}

CUresult record_with_flags(CUevent event, CUstream handle, unsigned flags) {
  Stream* stream = nullptr;
  if (const CUresult e = find_event(event)) return e;
  if (const CUresult e = find_stream(handle, stream)) return e;
  if (&root_of(*stream->context) != &root_of(*event->context)) return CUDA_ERROR_INVALID_HANDLE;
  Work work;
  work.name = "event record";
  if (stream->capture) {
    if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (flags & CU_EVENT_RECORD_EXTERNAL) {
      CUgraphNode node = nullptr;
      const CUresult e = capture_node(*stream, CU_GRAPH_NODE_TYPE_EVENT_RECORD, std::move(work), &node);
      if (node) node->records = event;
      return e;
    }
    event->capture = stream->capture;
    event->capture_nodes = stream->capture_frontier;
    event->record.reset();
    return CUDA_SUCCESS;
  }
  if (event->shared) {
    work.run = [shared = event->shared, number = event->shared->record()] { shared->complete(number); };
  }
  OpRef op;
  const CUresult e = submit(handle, CU_GRAPH_NODE_TYPE_EVENT_RECORD, std::move(work), &op);
  if (e == CUDA_SUCCESS) set_record(event, std::move(op));
  return e;
}

CUresult record(CUevent event, CUstream handle) { return record_with_flags(event, handle, 0); }

// Recorded by another process, as far as this one knows.
bool is_elsewhere(CUevent event) { return event->shared && !event->record; }

CUresult stream_wait(CUstream handle, CUevent event, unsigned flags) {
  Stream* stream = nullptr;
  if (const CUresult e = find_event(event)) return e;
  if (const CUresult e = find_stream(handle, stream)) return e;
  if (event->capture && !(flags & CU_EVENT_WAIT_EXTERNAL)) {
    if (!is_open(event->capture)) return CUDA_ERROR_CAPTURED_EVENT;
    if (event->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream->kind == StreamKind::kLegacy) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    if (stream->capture && stream->capture != event->capture) {
      stream->capture->invalid = event->capture->invalid = true;
      return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    join(*stream, event->capture, event->capture_nodes);
    return CUDA_SUCCESS;
  }
  if (stream->capture) {
    if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!event->record) return CUDA_SUCCESS;
    if (flags & CU_EVENT_WAIT_EXTERNAL) return capture_node(*stream, CU_GRAPH_NODE_TYPE_WAIT_EVENT, Work{});
    stream->capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  Work work;
  work.name = "wait for an event";
  if (is_elsewhere(event)) {
    const uint64_t number = event->shared->last_record();
    if (event->shared->is_done(number)) return CUDA_SUCCESS;
    work.ready = [shared = event->shared, number] { return shared->is_done(number); };
    return submit(handle, CU_GRAPH_NODE_TYPE_WAIT_EVENT, std::move(work));
  }
  if (is_done(event->record)) return CUDA_SUCCESS;
  // The wait itself is an operation, so that what is queued behind it needs no wait of its own. It keeps the record of
  // now.
  work.ready = [record = event->record] { return is_done(record); };
  OpRef op;
  const CUresult e = submit(handle, CU_GRAPH_NODE_TYPE_WAIT_EVENT, std::move(work), &op);
  if (e == CUDA_SUCCESS && op && !op->done) add_wait(*op, event->record);
  return e;
}

CUresult event_to_wait_for(CUevent event) {
  if (const CUresult e = find_event(event)) return e;
  if (event->capture) {
    event->capture->invalid = true;
    return CUDA_ERROR_CAPTURED_EVENT;
  }
  return refuse_unsafe_call();
}

CUresult query(CUevent event) {
  if (const CUresult e = event_to_wait_for(event)) return e;
  const OpRef record = event->record;
  Context& root = root_of(*event->context);
  if (is_elsewhere(event) && !event->shared->is_done(event->shared->last_record())) return CUDA_ERROR_NOT_READY;
  unsigned polls = event->polls;
  const bool done = poll(record, polls);
  if (state().events.valid(event)) event->polls = polls;
  return done ? root.error : CUDA_ERROR_NOT_READY;
}

CUresult synchronize(CUevent event) {
  if (const CUresult e = event_to_wait_for(event)) return e;
  Context& root = root_of(*event->context);
  if (is_elsewhere(event) && !event->shared->is_done(event->shared->last_record())) return CUDA_ERROR_NOT_SUPPORTED;
  wait_until_done(event->record);
  trim_idle_pools(*root.device);
  return root.error;
}

CUresult elapsed(float* milliseconds, CUevent start, CUevent end) {
  if (const CUresult e = find_event(start)) return e;
  if (const CUresult e = find_event(end)) return e;
  if (!milliseconds) return CUDA_ERROR_INVALID_VALUE;
  if ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING || !start->record || !end->record)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!is_done(start->record) || !is_done(end->record)) return CUDA_ERROR_NOT_READY;
  *milliseconds = static_cast<float>(end->record->finished_at - start->record->finished_at) / 1000.0f;
  return CUDA_SUCCESS;
}

CUresult find_context_and_event(CUcontext context, CUevent event) {
  if (!state().contexts.valid(context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (const CUresult e = find_event(event)) return e;
  return root_of(*context).error;
}

CUresult context_record(CUcontext context, CUevent event) {
  if (const CUresult e = find_context_and_event(context, event)) return e;
  if (&root_of(*event->context) != &root_of(*context)) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult e = refuse_while_capturing(*context)) return e;
  set_record(event, everything_submitted(*context));
  return CUDA_SUCCESS;
}

CUresult context_wait(CUcontext context, CUevent event) {
  if (const CUresult e = find_context_and_event(context, event)) return e;
  if (event->capture && is_open(event->capture)) {
    event->capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (const CUresult e = refuse_while_capturing(*context)) return e;
  add_barrier(*context, event->record);
  return CUDA_SUCCESS;
}

CUresult green_record(CUgreenCtx context, CUevent event) {
  return context_record(reinterpret_cast<CUcontext>(context), event);
}
CUresult green_wait(CUgreenCtx context, CUevent event) {
  return context_wait(reinterpret_cast<CUcontext>(context), event);
}

}  // namespace
}  // namespace gpupool::sim

using namespace gpupool::sim;

CUresult cuEventCreate(CUevent* out, unsigned flags) { return enter(Symbol::cuEventCreate, create, out, flags); }
CUresult cuEventDestroy_v2(CUevent event) { return enter(Symbol::cuEventDestroy_v2, destroy, event); }
CUresult cuEventQuery(CUevent event) { return enter(Symbol::cuEventQuery, query, event); }
CUresult cuEventSynchronize(CUevent event) { return enter(Symbol::cuEventSynchronize, synchronize, event); }
CUresult cuEventElapsedTime(float* ms, CUevent a, CUevent b) {
  return enter(Symbol::cuEventElapsedTime, elapsed, ms, a, b);
}
CUresult cuEventElapsedTime_v2(float* ms, CUevent a, CUevent b) {
  return enter(Symbol::cuEventElapsedTime_v2, elapsed, ms, a, b);
}
CUresult cuEventRecord(CUevent event, CUstream s) { return enter(Symbol::cuEventRecord, record, event, legacy(s)); }
CUresult cuEventRecord_ptsz(CUevent event, CUstream s) {
  return enter(Symbol::cuEventRecord_ptsz, record, event, per_thread(s));
}
CUresult cuEventRecordWithFlags(CUevent event, CUstream s, unsigned flags) {
  return enter(Symbol::cuEventRecordWithFlags, record_with_flags, event, legacy(s), flags);
}
CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream s, unsigned flags) {
  return enter(Symbol::cuEventRecordWithFlags_ptsz, record_with_flags, event, per_thread(s), flags);
}
CUresult cuStreamWaitEvent(CUstream s, CUevent event, unsigned flags) {
  return enter(Symbol::cuStreamWaitEvent, stream_wait, legacy(s), event, flags);
}
CUresult cuStreamWaitEvent_ptsz(CUstream s, CUevent event, unsigned flags) {
  return enter(Symbol::cuStreamWaitEvent_ptsz, stream_wait, per_thread(s), event, flags);
}
CUresult cuCtxRecordEvent(CUcontext c, CUevent event) {
  return enter(Symbol::cuCtxRecordEvent, context_record, c, event);
}
CUresult cuCtxWaitEvent(CUcontext c, CUevent event) { return enter(Symbol::cuCtxWaitEvent, context_wait, c, event); }
CUresult cuGreenCtxRecordEvent(CUgreenCtx c, CUevent event) {
  return enter(Symbol::cuGreenCtxRecordEvent, green_record, c, event);
}
CUresult cuGreenCtxWaitEvent(CUgreenCtx c, CUevent event) {
  return enter(Symbol::cuGreenCtxWaitEvent, green_wait, c, event);
}
