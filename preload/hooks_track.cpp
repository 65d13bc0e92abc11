// What changes the ground the pools stand on: captures, streams, contexts, peer access. The driver does the work; the
// pools are told before or after, whichever keeps their promise.
#include "preload/real.h"

#include <array>

#include "device/context.h"
#include "preload/serve.h"
#include "preload/streams.h"

namespace gpupool::hook {
namespace {

// Holds every tape, so that no record or wait can fall between a capture's begin and our knowing of it. In the order of
// the homes, after the registry's own lock.
class AllTapes {
 public:
  AllTapes() : registry_(process().registry.hold()) {
    unsigned next = 0;
    process().registry.each([&](Home& home) {
      if (home.serves()) tapes_[next++] = home.tape()->hold();
    });
  }

 private:
  std::unique_lock<Registry::Mutex> registry_;
  std::array<std::unique_lock<Tape::Mutex>, Registry::kMostHomes> tapes_;
};

void captures_over(Captures::Left left) {
  if (left != Captures::Left::kNoneOpen) return;
  process().registry.each([](Home& home) {
    if (home.serves()) home.tape()->captures_ended();
  });
}

template <class Ask>
CUresult begin_capture(Flavour flavour, CUstream given, Ask ask) {
  const Guard guard;
  if (guard.nested()) return ask();
  const Captures::Origin origin = Captures::origin_of(setup().api, named(given, flavour));
  const auto alone = process().captures.hold_to_begin();
  const AllTapes held;
  const CUresult result = ask();
  if (result == CUDA_SUCCESS) process().captures.began(origin);
  return result;
}

template <class Ask>
CUresult end_capture(Flavour flavour, CUstream given, Ask ask) {
  const Guard guard;
  if (guard.nested()) return ask();
  const CUstream stream = named(given, flavour);
  const CUresult result = ask();
  // A failed end closes an invalidated capture, and leaves one open that another thread began.
  if (result == CUDA_SUCCESS || !is_capturing(setup().api, stream)) {
    captures_over(process().captures.ended(Captures::origin_of(setup().api, stream)));
  }
  return result;
}

template <class Ask>
CUresult destroy_stream(CUstream stream, Ask ask) {
  const Guard guard;
  if (guard.nested() || is_default_stream(stream)) return ask();
  stream_ending(guard, stream);
  if (!process().captures.any_open()) return ask();
  const Captures::Origin origin =
      Captures::origin_of(setup().api, stream);  // now: a destroyed handle crashes the driver
  const CUresult result = ask();
  captures_over(process().captures.ended(origin));
  return result;
}

template <class Ask>
CUresult create_context(HookRow row, CUcontext* context, Ask ask) {
  const Guard guard;
  if (guard.nested()) return ask();
  const CUresult result = watched(guard, row, 0, ask);
  if (result == CUDA_SUCCESS && context) process().registry.context_created(*context);
  return result;
}

template <class Ask>
CUresult destroy_context(const Guard& guard, CUcontext context, Ask ask) {
  if (guard.nested() || !context) return ask();
  process().registry.context_ending(context);
  const CUresult result = ask();
  if (result == CUDA_ERROR_INVALID_CONTEXT || result == CUDA_ERROR_INVALID_VALUE) return result;  // it lives on
  process().imports.context_gone(context);
  captures_over(process().captures.context_ended(context));
  return result;
}

void primary_gone(CUcontext context) {
  if (!context) return;  // it had no pool, or is still there
  process().imports.context_gone(context);
  process().pools.forget_current();
  captures_over(process().captures.context_ended(context));
}

// A primary context that has no pool may have blocks of other processes open, or a stream that captures.
CUcontext primary_without_pool(CUdevice device) {
  const bool matters = process().imports.any() || process().captures.any_open();
  return matters ? primary_context(setup().api, device) : nullptr;
}

template <class Ask>
CUresult reset_primary(CUdevice device, Ask ask) {
  const Guard guard;
  if (guard.nested()) return ask();
  CUcontext context = primary_without_pool(device);
  if (const CUcontext known = process().registry.primary_ending(device)) context = known;
  const CUresult result = ask();
  primary_gone(context);
  return result;
}

template <class Ask>
CUresult release_primary(CUdevice device, Ask ask) {
  const Guard guard;
  if (guard.nested()) return ask();
  CUcontext context = primary_without_pool(device);
  const CUresult result = ask();
  if (const CUcontext known = process().registry.primary_released(device)) context = known;
  if (context && !primary_is_active(setup().api, device)) primary_gone(context);
  return result;
}

}  // namespace

CUresult cuStreamBeginCapture(CUstream stream) {
  return begin_capture(Flavour::kLegacy, stream, [&] { return real::cuStreamBeginCapture(stream); });
}

CUresult cuStreamBeginCapture_ptsz(CUstream stream) {
  return begin_capture(Flavour::kPerThread, stream, [&] { return real::cuStreamBeginCapture_ptsz(stream); });
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return begin_capture(Flavour::kLegacy, stream, [&] { return real::cuStreamBeginCapture_v2(stream, mode); });
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  return begin_capture(Flavour::kPerThread, stream, [&] { return real::cuStreamBeginCapture_v2_ptsz(stream, mode); });
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* nodes,
                                     const CUgraphEdgeData* edges, std::size_t count, CUstreamCaptureMode mode) {
  return begin_capture(Flavour::kLegacy, stream,
                       [&] { return real::cuStreamBeginCaptureToGraph(stream, graph, nodes, edges, count, mode); });
}

CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode* nodes,
                                          const CUgraphEdgeData* edges, std::size_t count, CUstreamCaptureMode mode) {
  return begin_capture(Flavour::kPerThread, stream, [&] {
    return real::cuStreamBeginCaptureToGraph_ptsz(stream, graph, nodes, edges, count, mode);
  });
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return end_capture(Flavour::kLegacy, stream, [&] { return real::cuStreamEndCapture(stream, graph); });
}

CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  return end_capture(Flavour::kPerThread, stream, [&] { return real::cuStreamEndCapture_ptsz(stream, graph); });
}

CUresult cuStreamDestroy(CUstream stream) {
  return destroy_stream(stream, [&] { return real::cuStreamDestroy(stream); });
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  return destroy_stream(stream, [&] { return real::cuStreamDestroy_v2(stream); });
}

CUresult cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device) {
  return create_context(kRow_cuCtxCreate, context, [&] { return real::cuCtxCreate(context, flags, device); });
}

CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  return create_context(kRow_cuCtxCreate_v2, context, [&] { return real::cuCtxCreate_v2(context, flags, device); });
}

CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* params, int count, unsigned flags, CUdevice device) {
  return create_context(kRow_cuCtxCreate_v3, context,
                        [&] { return real::cuCtxCreate_v3(context, params, count, flags, device); });
}

CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* params, unsigned flags, CUdevice device) {
  return create_context(kRow_cuCtxCreate_v4, context,
                        [&] { return real::cuCtxCreate_v4(context, params, flags, device); });
}

CUresult cuCtxDestroy(CUcontext context) {
  const Guard guard;
  return destroy_context(guard, context, [&] { return real::cuCtxDestroy(context); });
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  const Guard guard;
  return destroy_context(guard, context, [&] { return real::cuCtxDestroy_v2(context); });
}

CUresult cuCtxAttach(CUcontext* context, unsigned flags) {
  const Guard guard;
  const CUresult result = real::cuCtxAttach(context, flags);
  if (!guard.nested() && result == CUDA_SUCCESS) process().registry.context_attached(*context);
  return result;
}

CUresult cuCtxDetach(CUcontext context) {
  const Guard guard;
  const auto ask = [&] { return real::cuCtxDetach(context); };
  // The driver takes the current context only.
  if (guard.nested() || !context || context != current_context(setup().api)) return ask();
  return process().registry.detach_ends(context) ? destroy_context(guard, context, ask) : ask();
}

CUresult cuGreenCtxCreate(CUgreenCtx* context, CUdevResourceDesc description, CUdevice device, unsigned flags) {
  const Guard guard;
  const auto ask = [&] { return real::cuGreenCtxCreate(context, description, device, flags); };
  return guard.nested() ? ask() : watched(guard, kRow_cuGreenCtxCreate, 0, ask);
}

CUresult cuGreenCtxDestroy(CUgreenCtx context) {
  const Guard guard;
  epoch.fetch_add(1, std::memory_order_acq_rel);  // its handle may soon name another context
  const CUresult result = real::cuGreenCtxDestroy(context);
  if (guard.nested() || result != CUDA_SUCCESS) return result;
  // It may have been the last that held its primary context.
  for (const CUdevice device : process().registry.primary_devices())
    primary_gone(process().registry.primary_released(device));
  return result;
}

CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  return reset_primary(device, [&] { return real::cuDevicePrimaryCtxReset(device); });
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return reset_primary(device, [&] { return real::cuDevicePrimaryCtxReset_v2(device); });
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return release_primary(device, [&] { return real::cuDevicePrimaryCtxRelease(device); });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return release_primary(device, [&] { return real::cuDevicePrimaryCtxRelease_v2(device); });
}

CUresult cuCtxEnablePeerAccess(CUcontext owner, unsigned flags) {
  const Guard guard;
  const CUresult result = real::cuCtxEnablePeerAccess(owner, flags);
  const CUcontext accessor = guard.nested() ? nullptr : current_context(setup().api);
  if (result == CUDA_SUCCESS && accessor) process().registry.peer_enabled(owner, accessor);
  return result;
}

CUresult cuCtxDisablePeerAccess(CUcontext owner) {
  const Guard guard;
  const CUresult result = real::cuCtxDisablePeerAccess(owner);
  const CUcontext accessor = guard.nested() ? nullptr : current_context(setup().api);
  if (result == CUDA_SUCCESS && accessor) process().registry.peer_disabled(owner, accessor);
  return result;
}

}  // namespace gpupool::hook
