// Green contexts, as far as memory is concerned: streams of their own and context events of their own, while memory and
// errors are those of the primary context. Their handles are contexts too.
#include "tests/simcuda/call.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/contexts.h"
#include "tests/simcuda/scheduler.h"
#include "tests/simcuda/streams.h"

namespace gpupool::sim {
namespace {

constexpr unsigned kMultiprocessors = 132;

CUresult whole(CUdevResource* out, CUdevResourceType type) {
  if (!out || type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_VALUE;
  *out = CUdevResource{};
  out->type = type;
  out->sm.smCount = kMultiprocessors;
  return CUDA_SUCCESS;
}

CUresult device_resource(CUdevice ordinal, CUdevResource* out, CUdevResourceType type) {
  Device* device = nullptr;
  if (const CUresult e = device_of(ordinal, device)) return e;
  return whole(out, type);
}

CUresult context_resource(CUcontext context, CUdevResource* out, CUdevResourceType type) {
  return state().contexts.valid(context) ? whole(out, type) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult green_resource(CUgreenCtx context, CUdevResource* out, CUdevResourceType type) {
  return context_resource(reinterpret_cast<CUcontext>(context), out, type);
}

CUresult split(CUdevResource* result, unsigned* groups, const CUdevResource* input, CUdevResource* remaining, unsigned,
               unsigned least) {
  if (!groups || !input || least == 0) return CUDA_ERROR_INVALID_VALUE;
  const unsigned possible = input->sm.smCount / least;
  if (!result) return *groups = possible, CUDA_SUCCESS;
  *groups = std::min(*groups, possible);
  for (unsigned i = 0; i < *groups; ++i) {
    result[i] = *input;
    result[i].sm.smCount = least;
  }
  if (remaining) {
    *remaining = *input;
    remaining->sm.smCount = input->sm.smCount - *groups * least;
  }
  return CUDA_SUCCESS;
}

CUresult describe(CUdevResourceDesc* out, CUdevResource* resources, unsigned count) {
  if (!out || !resources || count == 0) return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<CUdevResourceDesc>(resources);
  return CUDA_SUCCESS;
}

CUresult create(CUgreenCtx* out, CUdevResourceDesc description, CUdevice ordinal, unsigned flags) {
  Device* device = nullptr;
  if (const CUresult e = device_of(ordinal, device)) return e;
  if (!out || !description || !(flags & CU_GREEN_CTX_DEFAULT_STREAM)) return CUDA_ERROR_INVALID_VALUE;
  if (!device->primary || !device->primary->legacy) return CUDA_ERROR_INVALID_CONTEXT;
  Context* context = make_context(*device, 0);
  context->parent = device->primary;
  CUcontext held = nullptr;
  if (const CUresult e = primary_retain(&held, ordinal)) return e;
  *out = reinterpret_cast<CUgreenCtx>(context);
  return CUDA_SUCCESS;
}

CUresult find_green(CUgreenCtx handle, Context*& out) {
  out = reinterpret_cast<Context*>(handle);
  return state().contexts.valid(out) && out->parent ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult destroy(CUgreenCtx handle) {
  Context* context = nullptr;
  if (const CUresult e = find_green(handle, context)) return e;
  const int device = context->device->ordinal;
  destroy_context(context);
  return primary_release(device);
}

CUresult as_context(CUcontext* out, CUgreenCtx handle) {
  Context* context = nullptr;
  if (const CUresult e = find_green(handle, context)) return e;
  return out ? (*out = context, CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE;
}

CUresult create_stream(CUstream* out, CUgreenCtx handle, unsigned flags, int priority) {
  Context* context = nullptr;
  if (const CUresult e = find_green(handle, context)) return e;
  if (!out || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  const StreamRef stream = make_stream(*context, StreamKind::kCreated, flags, priority);
  context->streams.push_back(stream);
  *out = make_stream_handle(stream);
  return CUDA_SUCCESS;
}

CUresult stream_green(CUstream handle, CUgreenCtx* out) {
  Stream* stream = nullptr;
  if (const CUresult e = find_stream(handle, stream)) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = stream->context->parent ? reinterpret_cast<CUgreenCtx>(stream->context) : nullptr;
  return CUDA_SUCCESS;
}

// The primary and, for a stream of a green context, which one.
CUresult stream_contexts(CUstream handle, CUcontext* primary, CUgreenCtx* green) {
  if (!primary) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = stream_green(handle, green)) return e;
  Stream* stream = nullptr;
  if (const CUresult e = find_stream(handle, stream)) return e;
  if (stream->kind == StreamKind::kLegacy) {
    if (const CUresult e = refuse_implicit_dependency(*stream)) return e;
  }
  *primary = &root_of(*stream->context);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace gpupool::sim

using namespace gpupool::sim;

CUresult cuDeviceGetDevResource(CUdevice d, CUdevResource* out, CUdevResourceType type) {
  return enter(Symbol::cuDeviceGetDevResource, device_resource, d, out, type);
}
CUresult cuCtxGetDevResource(CUcontext c, CUdevResource* out, CUdevResourceType type) {
  return enter(Symbol::cuCtxGetDevResource, context_resource, c, out, type);
}
CUresult cuGreenCtxGetDevResource(CUgreenCtx c, CUdevResource* out, CUdevResourceType type) {
  return enter(Symbol::cuGreenCtxGetDevResource, green_resource, c, out, type);
}
CUresult cuDevSmResourceSplitByCount(CUdevResource* result, unsigned* groups, const CUdevResource* input,
                                     CUdevResource* rest, unsigned flags, unsigned least) {
  return enter(Symbol::cuDevSmResourceSplitByCount, split, result, groups, input, rest, flags, least);
}
CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* out, CUdevResource* resources, unsigned count) {
  return enter(Symbol::cuDevResourceGenerateDesc, describe, out, resources, count);
}
CUresult cuGreenCtxCreate(CUgreenCtx* out, CUdevResourceDesc description, CUdevice d, unsigned flags) {
  return enter(Symbol::cuGreenCtxCreate, create, out, description, d, flags);
}
CUresult cuGreenCtxDestroy(CUgreenCtx c) { return enter(Symbol::cuGreenCtxDestroy, destroy, c); }
CUresult cuCtxFromGreenCtx(CUcontext* out, CUgreenCtx c) {
  return enter(Symbol::cuCtxFromGreenCtx, as_context, out, c);
}
CUresult cuGreenCtxStreamCreate(CUstream* out, CUgreenCtx c, unsigned flags, int priority) {
  return enter(Symbol::cuGreenCtxStreamCreate, create_stream, out, c, flags, priority);
}
CUresult cuStreamGetGreenCtx(CUstream s, CUgreenCtx* out) {
  return enter(Symbol::cuStreamGetGreenCtx, stream_green, s, out);
}
CUresult cuStreamGetCtx_v2(CUstream s, CUcontext* primary, CUgreenCtx* green) {
  return enter(Symbol::cuStreamGetCtx_v2, stream_contexts, legacy(s), primary, green);
}
CUresult cuStreamGetCtx_v2_ptsz(CUstream s, CUcontext* primary, CUgreenCtx* green) {
  return enter(Symbol::cuStreamGetCtx_v2_ptsz, stream_contexts, per_thread(s), primary, green);
}
