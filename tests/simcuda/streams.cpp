// See streams.h. A destroyed stream's queue stays with its context until it has run.
#include "tests/simcuda/streams.h"

#include <cstdio>
#include <cstdlib>

#include "tests/simcuda/call.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/mempool.h"
#include "tests/simcuda/scheduler.h"

namespace gpupool::sim {
namespace {

CUresult create(CUstream* out, unsigned flags, int priority) {
  Context* context = nullptr;
  if (const CUresult e = current_context(context)) return e;
  if (!out || flags & ~unsigned{CU_STREAM_NON_BLOCKING}) return CUDA_ERROR_INVALID_VALUE;
  const StreamRef stream = make_stream(*context, StreamKind::kCreated, flags, priority);
  context->streams.push_back(stream);
  *out = make_stream_handle(stream);
  return CUDA_SUCCESS;
}

CUresult create_plain(CUstream* out, unsigned flags) { return create(out, flags, 0); }

CUresult destroy(CUstream handle) {
  if (!state().streams.valid(handle)) return CUDA_ERROR_INVALID_HANDLE;
  const StreamRef stream = handle->stream;
  leave_capture(*stream);
  state().streams.drop(handle);
  stream->destroyed = true;
  if (stream->queue.empty()) std::erase(stream->context->streams, stream);
  return CUDA_SUCCESS;
}

CUresult get_priority(CUstream handle, int* out) {
  Stream* stream = nullptr;
  if (const CUresult e = find_stream(handle, stream)) return e;
  return out ? (*out = stream->priority, CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE;
}

CUresult get_flags(CUstream handle, unsigned* out) {
  Stream* stream = nullptr;
  if (const CUresult e = find_stream(handle, stream)) return e;
  return out ? (*out = stream->flags, CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE;
}

CUresult get_id(CUstream handle, unsigned long long* out) {
  Stream* stream = nullptr;
  if (const CUresult e = find_stream(handle, stream)) return e;
  return out ? (*out = stream->id, CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE;
}

CUresult get_context(CUstream handle, CUcontext* out) {
  Stream* stream = nullptr;
  if (const CUresult e = find_stream(handle, stream)) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  // Asked for its context while it captures, in any mode: allowed. But asking the legacy stream kills the capture of a
  // blocking one. The context of a green stream is its primary.
  if (stream->kind == StreamKind::kLegacy) {
    if (const CUresult e = refuse_implicit_dependency(*stream)) return e;
  }
  *out = &root_of(*stream->context);
  return CUDA_SUCCESS;
}

CUresult get_device(CUstream handle, CUdevice* out) {
  Stream* stream = nullptr;
  if (const CUresult e = find_stream(handle, stream)) return e;
  return out ? (*out = stream->context->device->ordinal, CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE;
}

// Query and synchronize forbid the same things.
CUresult stream_to_wait_for(CUstream handle, Stream*& stream) {
  if (const CUresult e = find_stream(handle, stream)) return e;
  if (stream->capture) {
    stream->capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (stream->kind == StreamKind::kLegacy) {
    if (const CUresult e = refuse_implicit_dependency(*stream)) return e;
  }
  return refuse_unsafe_call();
}

// The legacy stream also stands for what blocking streams have queued.
OpRef last_of(Stream& stream) {
  if (stream.kind != StreamKind::kLegacy) return stream.tail;
  auto all = std::make_shared<Op>();
  all->context = stream.context;
  add_wait(*all, stream.tail);
  for_each_stream(*stream.context, [&](Stream& other) {
    if (other.is_blocking()) add_wait(*all, other.tail);
  });
  return all;
}

CUresult query(CUstream handle) {
  Stream* stream = nullptr;
  if (const CUresult e = stream_to_wait_for(handle, stream)) return e;
  // Every query lets some time pass.
  unsigned polls = ~0u - 1;
  if (!poll(last_of(*stream), polls)) return CUDA_ERROR_NOT_READY;
  return root_of(*stream->context).error;
}

CUresult synchronize(CUstream handle) {
  Stream* stream = nullptr;
  if (const CUresult e = stream_to_wait_for(handle, stream)) return e;
  Context& context = *stream->context;
  wait_until_done(last_of(*stream));
  trim_idle_pools(*context.device);
  return root_of(context).error;
}

CUresult launch_host_func(CUstream handle, CUhostFn function, void* data) {
  if (!function) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  work.name = "host function";
  work.run = [function, data] { function(data); };
  work.calls_program = true;
  return submit(handle, CU_GRAPH_NODE_TYPE_HOST, std::move(work));
}

CUresult add_callback(CUstream handle, CUstreamCallback callback, void* data, unsigned flags) {
  if (!callback || flags) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  work.name = "callback";
  work.run = [handle, callback, data] { callback(handle, CUDA_SUCCESS, data); };
  work.calls_program = true;
  return submit(handle, CU_GRAPH_NODE_TYPE_HOST, std::move(work));
}

CUresult attach_memory(CUstream handle, CUdeviceptr, size_t, unsigned) {
  Stream* stream = nullptr;
  return find_stream(handle, stream);
}

template <class T>
bool satisfied(T now, T wanted, unsigned flags) {
  switch (flags & 3u) {
    case CU_STREAM_WAIT_VALUE_EQ:
      return now == wanted;
    case CU_STREAM_WAIT_VALUE_AND:
      return (now & wanted) != 0;
    case CU_STREAM_WAIT_VALUE_NOR:
      return static_cast<T>(~(now | wanted)) != 0;
    default:
      return static_cast<std::make_signed_t<T>>(now - wanted) >= 0;
  }
}

template <class T>
CUresult wait_value(CUstream handle, CUdeviceptr address, T value, unsigned flags) {
  if (!address || address % sizeof(T)) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  work.name = "wait for a value";
  work.ready = [address, value, flags] { return satisfied(*reinterpret_cast<volatile T*>(address), value, flags); };
  return submit(handle, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, std::move(work));
}

template <class T>
CUresult write_value(CUstream handle, CUdeviceptr address, T value, unsigned) {
  if (!address || address % sizeof(T)) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  work.name = "write a value";
  work.accesses = {{address, sizeof(T), Touch::kWrite, is_device_address(address)}};
  work.run = [address, value] { *reinterpret_cast<volatile T*>(address) = value; };
  return submit(handle, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, std::move(work));
}

}  // namespace

CUresult find_stream(CUstream handle, Stream*& out) {
  if (handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) {
    if (!state().streams.valid(handle)) {
      // NVIDIA's driver looks into the handle it is given, and crashes on one that is no stream or no more (seen on a
      // card).
      std::fprintf(stderr, "simcuda: %p is not a stream\n", static_cast<void*>(handle));
      std::abort();
    }
    out = handle->stream.get();
    return root_of(*out->context).error;
  }
  Context* context = nullptr;
  if (const CUresult e = current_context(context)) return e;
  if (handle == CU_STREAM_LEGACY) {
    out = context->legacy.get();
    return CUDA_SUCCESS;
  }
  StreamRef& mine = context->per_thread[this_thread()];
  if (!mine) mine = make_stream(*context, StreamKind::kPerThread, CU_STREAM_DEFAULT, 0);
  out = mine.get();
  return CUDA_SUCCESS;
}

CUresult submit(CUstream handle, CUgraphNodeType type, Work work, OpRef* submitted) {
  Stream* stream = nullptr;
  if (const CUresult e = find_stream(handle, stream)) return e;
  if (stream->capture) return capture_node(*stream, type, std::move(work));
  if (stream->kind == StreamKind::kLegacy) {
    if (const CUresult e = refuse_implicit_dependency(*stream)) return e;
  }
  OpRef op = enqueue(*stream, std::move(work));
  if (submitted) *submitted = std::move(op);
  return CUDA_SUCCESS;
}

StreamRef make_stream(Context& context, StreamKind kind, unsigned flags, int priority) {
  auto stream = std::make_shared<Stream>();
  stream->id = state().next_id++;
  stream->kind = kind;
  stream->context = &context;
  stream->flags = flags;
  stream->priority = priority;
  return stream;
}

CUstream make_stream_handle(const StreamRef& stream) {
  const CUstream handle = state().streams.make();
  handle->stream = stream;
  return handle;
}

void drop_streams(Context& context) {
  std::vector<CUstream> gone;
  for (CUstream handle : state().streams.all()) {
    if (handle->stream->context == &context) gone.push_back(handle);
  }
  for (CUstream handle : gone) {
    leave_capture(*handle->stream);
    state().streams.drop(handle);
  }
  for (auto& [thread, stream] : context.per_thread) leave_capture(*stream);
  context.streams.clear();
  context.per_thread.clear();
  context.legacy.reset();
}

}  // namespace gpupool::sim

using namespace gpupool::sim;

CUresult cuStreamCreate(CUstream* out, unsigned flags) {
  return enter(Symbol::cuStreamCreate, create_plain, out, flags);
}
CUresult cuStreamCreateWithPriority(CUstream* out, unsigned flags, int priority) {
  return enter(Symbol::cuStreamCreateWithPriority, create, out, flags, priority);
}
CUresult cuStreamDestroy(CUstream s) { return enter(Symbol::cuStreamDestroy, destroy, s); }
CUresult cuStreamDestroy_v2(CUstream s) { return enter(Symbol::cuStreamDestroy_v2, destroy, s); }
CUresult cuStreamGetPriority(CUstream s, int* out) {
  return enter(Symbol::cuStreamGetPriority, get_priority, legacy(s), out);
}
CUresult cuStreamGetPriority_ptsz(CUstream s, int* out) {
  return enter(Symbol::cuStreamGetPriority_ptsz, get_priority, per_thread(s), out);
}
CUresult cuStreamGetFlags(CUstream s, unsigned* out) {
  return enter(Symbol::cuStreamGetFlags, get_flags, legacy(s), out);
}
CUresult cuStreamGetFlags_ptsz(CUstream s, unsigned* out) {
  return enter(Symbol::cuStreamGetFlags_ptsz, get_flags, per_thread(s), out);
}
CUresult cuStreamGetId(CUstream s, unsigned long long* out) {
  return enter(Symbol::cuStreamGetId, get_id, legacy(s), out);
}
CUresult cuStreamGetId_ptsz(CUstream s, unsigned long long* out) {
  return enter(Symbol::cuStreamGetId_ptsz, get_id, per_thread(s), out);
}
CUresult cuStreamGetCtx(CUstream s, CUcontext* out) {
  return enter(Symbol::cuStreamGetCtx, get_context, legacy(s), out);
}
CUresult cuStreamGetCtx_ptsz(CUstream s, CUcontext* out) {
  return enter(Symbol::cuStreamGetCtx_ptsz, get_context, per_thread(s), out);
}
CUresult cuStreamGetDevice(CUstream s, CUdevice* out) {
  return enter(Symbol::cuStreamGetDevice, get_device, legacy(s), out);
}
CUresult cuStreamGetDevice_ptsz(CUstream s, CUdevice* out) {
  return enter(Symbol::cuStreamGetDevice_ptsz, get_device, per_thread(s), out);
}
CUresult cuStreamQuery(CUstream s) { return enter(Symbol::cuStreamQuery, query, legacy(s)); }
CUresult cuStreamQuery_ptsz(CUstream s) { return enter(Symbol::cuStreamQuery_ptsz, query, per_thread(s)); }
CUresult cuStreamSynchronize(CUstream s) { return enter(Symbol::cuStreamSynchronize, synchronize, legacy(s)); }
CUresult cuStreamSynchronize_ptsz(CUstream s) {
  return enter(Symbol::cuStreamSynchronize_ptsz, synchronize, per_thread(s));
}
CUresult cuLaunchHostFunc(CUstream s, CUhostFn function, void* data) {
  return enter(Symbol::cuLaunchHostFunc, launch_host_func, legacy(s), function, data);
}
CUresult cuLaunchHostFunc_ptsz(CUstream s, CUhostFn function, void* data) {
  return enter(Symbol::cuLaunchHostFunc_ptsz, launch_host_func, per_thread(s), function, data);
}
CUresult cuStreamAddCallback(CUstream s, CUstreamCallback callback, void* data, unsigned flags) {
  return enter(Symbol::cuStreamAddCallback, add_callback, legacy(s), callback, data, flags);
}
CUresult cuStreamAddCallback_ptsz(CUstream s, CUstreamCallback callback, void* data, unsigned flags) {
  return enter(Symbol::cuStreamAddCallback_ptsz, add_callback, per_thread(s), callback, data, flags);
}
CUresult cuStreamAttachMemAsync(CUstream s, CUdeviceptr at, size_t size, unsigned flags) {
  return enter(Symbol::cuStreamAttachMemAsync, attach_memory, legacy(s), at, size, flags);
}
CUresult cuStreamAttachMemAsync_ptsz(CUstream s, CUdeviceptr at, size_t size, unsigned flags) {
  return enter(Symbol::cuStreamAttachMemAsync_ptsz, attach_memory, per_thread(s), at, size, flags);
}
CUresult cuStreamWaitValue32_v2(CUstream s, CUdeviceptr at, cuuint32_t value, unsigned flags) {
  return enter(Symbol::cuStreamWaitValue32_v2, wait_value<cuuint32_t>, legacy(s), at, value, flags);
}
CUresult cuStreamWaitValue32_v2_ptsz(CUstream s, CUdeviceptr at, cuuint32_t value, unsigned flags) {
  return enter(Symbol::cuStreamWaitValue32_v2_ptsz, wait_value<cuuint32_t>, per_thread(s), at, value, flags);
}
CUresult cuStreamWriteValue32_v2(CUstream s, CUdeviceptr at, cuuint32_t value, unsigned flags) {
  return enter(Symbol::cuStreamWriteValue32_v2, write_value<cuuint32_t>, legacy(s), at, value, flags);
}
CUresult cuStreamWriteValue32_v2_ptsz(CUstream s, CUdeviceptr at, cuuint32_t value, unsigned flags) {
  return enter(Symbol::cuStreamWriteValue32_v2_ptsz, write_value<cuuint32_t>, per_thread(s), at, value, flags);
}
CUresult cuStreamWaitValue64_v2(CUstream s, CUdeviceptr at, cuuint64_t value, unsigned flags) {
  return enter(Symbol::cuStreamWaitValue64_v2, wait_value<cuuint64_t>, legacy(s), at, value, flags);
}
CUresult cuStreamWaitValue64_v2_ptsz(CUstream s, CUdeviceptr at, cuuint64_t value, unsigned flags) {
  return enter(Symbol::cuStreamWaitValue64_v2_ptsz, wait_value<cuuint64_t>, per_thread(s), at, value, flags);
}
CUresult cuStreamWriteValue64_v2(CUstream s, CUdeviceptr at, cuuint64_t value, unsigned flags) {
  return enter(Symbol::cuStreamWriteValue64_v2, write_value<cuuint64_t>, legacy(s), at, value, flags);
}
CUresult cuStreamWriteValue64_v2_ptsz(CUstream s, CUdeviceptr at, cuuint64_t value, unsigned flags) {
  return enter(Symbol::cuStreamWriteValue64_v2_ptsz, write_value<cuuint64_t>, per_thread(s), at, value, flags);
}
