// The driver's context functions. Context handles of primaries stay the same over a reset, as natively.
#include "tests/simcuda/call.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/contexts.h"
#include "tests/simcuda/mempool.h"
#include "tests/simcuda/scheduler.h"
#include "tests/simcuda/streams.h"

namespace gpupool::sim {

CUresult primary_retain(CUcontext* out, CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult e = device_of(ordinal, device)) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (!device->primary) {
    device->primary = make_context(*device, device->primary_flags);
    device->primary->primary = true;
  } else if (!device->primary->legacy) {
    start_context(*device->primary);
  }
  ++device->primary_users;
  *out = device->primary;
  return CUDA_SUCCESS;
}

CUresult primary_reset(CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult e = device_of(ordinal, device)) return e;
  if (!device->primary || !device->primary->legacy) return CUDA_SUCCESS;
  empty_context(*device->primary);
  device->primary->error = CUDA_SUCCESS;
  device->primary_users = 0;
  return CUDA_SUCCESS;
}

CUresult primary_release(CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult e = device_of(ordinal, device)) return e;
  if (device->primary_users == 0) return CUDA_ERROR_INVALID_CONTEXT;
  return --device->primary_users == 0 ? primary_reset(ordinal) : CUDA_SUCCESS;
}

namespace {

CUresult primary_state(CUdevice ordinal, unsigned* flags, int* active) {
  Device* device = nullptr;
  if (const CUresult e = device_of(ordinal, device)) return e;
  if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
  *flags = device->primary_flags;
  *active = device->primary && device->primary->legacy;
  return CUDA_SUCCESS;
}

CUresult primary_set_flags(CUdevice ordinal, unsigned flags) {
  Device* device = nullptr;
  if (const CUresult e = device_of(ordinal, device)) return e;
  device->primary_flags = flags;
  return CUDA_SUCCESS;
}

CUresult create(CUcontext* out, unsigned flags, CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult e = device_of(ordinal, device)) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = make_context(*device, flags);
  context_stack().push_back(*out);
  return CUDA_SUCCESS;
}

CUresult create_v3(CUcontext* out, CUexecAffinityParam*, int, unsigned flags, CUdevice ordinal) {
  return create(out, flags, ordinal);
}
CUresult create_v4(CUcontext* out, CUctxCreateParams*, unsigned flags, CUdevice ordinal) {
  return create(out, flags, ordinal);
}

CUresult destroy(CUcontext context) {
  if (!state().contexts.valid(context) || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  auto& stack = context_stack();
  if (!stack.empty() && stack.back() == context) stack.pop_back();
  destroy_context(context);
  return CUDA_SUCCESS;
}

CUresult attach(CUcontext* out, unsigned flags) {
  Context* context = nullptr;
  if (const CUresult e = current_context_even_lost(context)) return e;
  if (!out || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  ++context->users;
  *out = context;
  return CUDA_SUCCESS;
}

CUresult detach(CUcontext context) {
  Context* current = nullptr;
  if (const CUresult e = current_context_even_lost(current)) return e;
  if (context != current || context->primary || context->parent) return CUDA_ERROR_INVALID_CONTEXT;
  return --context->users == 0 ? destroy(context) : CUDA_SUCCESS;
}

CUresult push(CUcontext context) {
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  if (!state().contexts.valid(context)) return CUDA_ERROR_INVALID_CONTEXT;
  context_stack().push_back(context);
  return CUDA_SUCCESS;
}

CUresult pop(CUcontext* out) {
  auto& stack = context_stack();
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (out) *out = stack.back();
  stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult set_current(CUcontext context) {
  auto& stack = context_stack();
  if (context && !state().contexts.valid(context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (!stack.empty()) stack.pop_back();
  if (context) stack.push_back(context);
  return CUDA_SUCCESS;
}

CUresult get_current(CUcontext* out) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  const auto& stack = context_stack();
  *out = stack.empty() ? nullptr : stack.back();
  return CUDA_SUCCESS;
}

CUresult get_device(CUdevice* out) {
  Context* context = nullptr;
  if (const CUresult e = current_context_even_lost(context)) return e;
  return out ? (*out = context->device->ordinal, CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE;
}

// Null stands for the current context.
CUresult given_or_current(CUcontext& context) {
  if (!context) return current_context_even_lost(context);
  return state().contexts.valid(context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult get_device_v2(CUdevice* out, CUcontext context) {
  if (const CUresult e = given_or_current(context)) return e;
  return out ? (*out = context->device->ordinal, CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE;
}

CUresult get_flags(unsigned* out) {
  Context* context = nullptr;
  if (const CUresult e = current_context(context)) return e;
  return out ? (*out = context->flags, CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE;
}

CUresult set_flags(unsigned flags) {
  Context* context = nullptr;
  if (const CUresult e = current_context(context)) return e;
  context->flags = flags;
  return CUDA_SUCCESS;
}

CUresult get_id(CUcontext context, unsigned long long* out) {
  if (const CUresult e = given_or_current(context)) return e;
  return out ? (*out = context->id, CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE;
}

CUresult get_api_version(CUcontext context, unsigned* out) {
  if (const CUresult e = given_or_current(context)) return e;
  return out ? (*out = 3020, CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE;
}

CUresult get_limit(size_t* out, CUlimit limit) {
  Context* context = nullptr;
  if (const CUresult e = current_context(context)) return e;
  return out ? (*out = context->limits[limit], CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE;
}

CUresult set_limit(CUlimit limit, size_t value) {
  Context* context = nullptr;
  if (const CUresult e = current_context(context)) return e;
  context->limits[limit] = value;
  return CUDA_SUCCESS;
}

CUresult priority_range(int* least, int* greatest) {
  Context* context = nullptr;
  if (const CUresult e = current_context(context)) return e;
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return CUDA_SUCCESS;
}

CUresult synchronize_v2(CUcontext context) {
  if (const CUresult e = given_or_current(context)) return e;
  if (const CUresult e = root_of(*context).error) return e;
  if (const CUresult e = refuse_while_capturing(*context)) return e;
  if (const CUresult e = refuse_unsafe_call()) return e;
  wait_for_context(*context);
  trim_idle_pools(*context->device);
  return root_of(*context).error;
}

CUresult synchronize() { return synchronize_v2(nullptr); }

CUresult enable_peer(CUcontext peer, unsigned flags) {
  Context* context = nullptr;
  if (const CUresult e = current_context(context)) return e;
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  if (!state().contexts.valid(peer)) return CUDA_ERROR_INVALID_CONTEXT;
  if (peer->device == context->device) return CUDA_ERROR_INVALID_CONTEXT;
  return context->peers.insert(peer).second ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

CUresult disable_peer(CUcontext peer) {
  Context* context = nullptr;
  if (const CUresult e = current_context(context)) return e;
  return context->peers.erase(peer) ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

}  // namespace
}  // namespace gpupool::sim

using namespace gpupool::sim;

CUresult cuDevicePrimaryCtxRetain(CUcontext* c, CUdevice d) {
  return enter(Symbol::cuDevicePrimaryCtxRetain, primary_retain, c, d);
}
CUresult cuDevicePrimaryCtxRelease(CUdevice d) { return enter(Symbol::cuDevicePrimaryCtxRelease, primary_release, d); }
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d) {
  return enter(Symbol::cuDevicePrimaryCtxRelease_v2, primary_release, d);
}
CUresult cuDevicePrimaryCtxReset(CUdevice d) { return enter(Symbol::cuDevicePrimaryCtxReset, primary_reset, d); }
CUresult cuDevicePrimaryCtxReset_v2(CUdevice d) { return enter(Symbol::cuDevicePrimaryCtxReset_v2, primary_reset, d); }
CUresult cuDevicePrimaryCtxGetState(CUdevice d, unsigned* flags, int* active) {
  return enter(Symbol::cuDevicePrimaryCtxGetState, primary_state, d, flags, active);
}
CUresult cuDevicePrimaryCtxSetFlags(CUdevice d, unsigned f) {
  return enter(Symbol::cuDevicePrimaryCtxSetFlags, primary_set_flags, d, f);
}
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice d, unsigned f) {
  return enter(Symbol::cuDevicePrimaryCtxSetFlags_v2, primary_set_flags, d, f);
}
CUresult cuCtxCreate(CUcontext* c, unsigned flags, CUdevice d) {
  return enter(Symbol::cuCtxCreate, create, c, flags, d);
}
CUresult cuCtxCreate_v2(CUcontext* c, unsigned flags, CUdevice d) {
  return enter(Symbol::cuCtxCreate_v2, create, c, flags, d);
}
CUresult cuCtxCreate_v3(CUcontext* c, CUexecAffinityParam* params, int count, unsigned flags, CUdevice d) {
  return enter(Symbol::cuCtxCreate_v3, create_v3, c, params, count, flags, d);
}
CUresult cuCtxCreate_v4(CUcontext* c, CUctxCreateParams* params, unsigned flags, CUdevice d) {
  return enter(Symbol::cuCtxCreate_v4, create_v4, c, params, flags, d);
}
CUresult cuCtxDestroy(CUcontext c) { return enter(Symbol::cuCtxDestroy, destroy, c); }
CUresult cuCtxDestroy_v2(CUcontext c) { return enter(Symbol::cuCtxDestroy_v2, destroy, c); }
CUresult cuCtxAttach(CUcontext* c, unsigned flags) { return enter(Symbol::cuCtxAttach, attach, c, flags); }
CUresult cuCtxDetach(CUcontext c) { return enter(Symbol::cuCtxDetach, detach, c); }
CUresult cuCtxPushCurrent_v2(CUcontext c) { return enter(Symbol::cuCtxPushCurrent_v2, push, c); }
CUresult cuCtxPopCurrent_v2(CUcontext* c) { return enter(Symbol::cuCtxPopCurrent_v2, pop, c); }
CUresult cuCtxSetCurrent(CUcontext c) { return enter(Symbol::cuCtxSetCurrent, set_current, c); }
CUresult cuCtxGetCurrent(CUcontext* c) { return enter(Symbol::cuCtxGetCurrent, get_current, c); }
CUresult cuCtxGetDevice(CUdevice* d) { return enter(Symbol::cuCtxGetDevice, get_device, d); }
CUresult cuCtxGetDevice_v2(CUdevice* d, CUcontext c) { return enter(Symbol::cuCtxGetDevice_v2, get_device_v2, d, c); }
CUresult cuCtxGetFlags(unsigned* flags) { return enter(Symbol::cuCtxGetFlags, get_flags, flags); }
CUresult cuCtxSetFlags(unsigned flags) { return enter(Symbol::cuCtxSetFlags, set_flags, flags); }
CUresult cuCtxGetId(CUcontext c, unsigned long long* id) { return enter(Symbol::cuCtxGetId, get_id, c, id); }
CUresult cuCtxGetApiVersion(CUcontext c, unsigned* version) {
  return enter(Symbol::cuCtxGetApiVersion, get_api_version, c, version);
}
CUresult cuCtxGetLimit(size_t* value, CUlimit limit) { return enter(Symbol::cuCtxGetLimit, get_limit, value, limit); }
CUresult cuCtxSetLimit(CUlimit limit, size_t value) { return enter(Symbol::cuCtxSetLimit, set_limit, limit, value); }
CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return enter(Symbol::cuCtxGetStreamPriorityRange, priority_range, least, greatest);
}
CUresult cuCtxSynchronize() { return enter(Symbol::cuCtxSynchronize, synchronize); }
CUresult cuCtxSynchronize_v2(CUcontext c) { return enter(Symbol::cuCtxSynchronize_v2, synchronize_v2, c); }
CUresult cuCtxEnablePeerAccess(CUcontext c, unsigned flags) {
  return enter(Symbol::cuCtxEnablePeerAccess, enable_peer, c, flags);
}
CUresult cuCtxDisablePeerAccess(CUcontext c) { return enter(Symbol::cuCtxDisablePeerAccess, disable_peer, c); }
