// Stream-ordered device memory: cuMemAllocAsync, cuMemAllocFromPoolAsync, cuMemFreeAsync, each in the spelling of the
// legacy and of the per-thread default stream. Inside a capture this memory belongs to the graph, and the driver serves
// it.
#include "preload/real.h"

#include "preload/pool_calls.h"
#include "preload/serve.h"
#include "preload/streams.h"

namespace gpupool::hook {
namespace {

bool serveable(const Guard& guard, const CUdeviceptr* out, std::uint64_t bytes) {
  return !guard.nested() && out && bytes != 0 && bytes <= kLargestRequest;
}

// Streams of a tape have small numbers there.
std::uint64_t name_for_trace(CUstream stream) {
  return reinterpret_cast<std::uintptr_t>(stream) | std::uint64_t{1} << 63;
}

// Stream-ordered memory is its device's, not a context's: it lies on the tape of the device's primary context, and so
// outlives the context whose stream asked for it. Where no primary context exists the driver serves, because making one
// would be seen. That home is not the one of the stream's own context.
StreamSpot spot_on(const Guard& guard, CUdevice device, CUstream stream, std::uint64_t bytes) {
  Home* primary = process().registry.of_primary(guard, device, bytes);
  return primary ? StreamSpot{primary, line_on(guard, *primary, stream).line} : StreamSpot{};
}

// Counts a request in its pool, whether the tape serves it or the driver in its place: to the program it is one pool.
// Without a limit those who serve it have counted it.
template <class Serve>
CUresult counted(MemoryPool& pool, std::uint64_t bytes, Serve serve) {
  if (!pool.limited()) [[likely]] {
    const CUresult result = serve();
    if (result == CUDA_SUCCESS) pool.served();
    return result;
  }
  if (!pool.take(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result{};
  try {
    result = serve();
  } catch (...) {  // no host memory
    pool.give_back(bytes);
    throw;
  }
  if (result == CUDA_SUCCESS)
    pool.served();
  else
    pool.give_back(bytes);
  return result;
}

template <class Ask>
CUresult from_pool(const Guard& guard, const StreamSpot& own, CUstream stream, MemoryPool& pool, HookRow row,
                   std::uint64_t bytes, CUdeviceptr* out, const Ask& ask) {
  if (const CUresult fault = fault_on(stream, own.home)) [[unlikely]]
    return driver_said(*own.home, fault);
  const bool at_home = own.home->device() == pool.device() && own.home->owner() == Home::Owner::kPrimary;
  const auto [home, line] = at_home ? own : spot_on(guard, pool.device(), stream, bytes);
  // Slabs of cuMemAlloc cannot be opened to another device as a memory pool can.
  if (!home || (pool.opened() && !home->movable())) [[unlikely]] {
    const Passing passing{home ? line : name_for_trace(stream), pool.tag()};
    return counted(pool, bytes, [&] { return pass_through(guard, row, bytes, out, ask, passing); });
  }
  const Request request{
      .bytes = bytes, .line = line, .tag = pool.tag(), .may_wait = pool.may_wait(), .own_free = home->own_free()};
  return counted(pool, bytes, [&] { return serve(guard, *home, request, row, out, ask, stream); });
}

template <class Ask>
CUresult alloc(HookRow row, Flavour flavour, CUdeviceptr* out, std::size_t bytes, CUstream given, const Ask& ask) {
  const Guard guard;
  if (!serveable(guard, out, bytes)) [[unlikely]]
    return ask();
  const CUstream stream = named(given, flavour);
  if (captures_stream(stream)) [[unlikely]]
    return watched(guard, row, bytes, ask);
  const StreamSpot own = spot_of(guard, stream, bytes);
  MemoryPool* pool = own.home ? current_pool(guard, own.home->device()) : nullptr;
  return pool ? from_pool(guard, own, stream, *pool, row, bytes, out, ask)
              : pass_through(guard, row, bytes, out, ask, {name_for_trace(stream)});
}

template <class Ask>
CUresult alloc_from(HookRow row, Flavour flavour, CUdeviceptr* out, std::size_t bytes, CUmemoryPool handle,
                    CUstream given, const Ask& ask) {
  const Guard guard;
  if (!serveable(guard, out, bytes)) [[unlikely]]
    return ask();
  const CUstream stream = named(given, flavour);
  if (captures_stream(stream)) [[unlikely]]
    return watched(guard, row, bytes, ask);
  MemoryPool* pool = known_pool(guard, handle);
  const StreamSpot own = pool ? spot_of(guard, stream, bytes) : StreamSpot{};
  return own.home ? from_pool(guard, own, stream, *pool, row, bytes, out, ask)
                  : pass_through(guard, row, bytes, out, ask, {name_for_trace(stream)});
}

template <class Ask>
CUresult free(HookRow row, Flavour flavour, CUdeviceptr address, CUstream given, const Ask& ask) {
  const Guard guard;
  if (guard.nested()) [[unlikely]]
    return ask();
  Home* home = process().registry.at(address);
  if (!home || !home->serves()) [[unlikely]]
    return pass_free(guard, row, address, ask);
  const CUstream stream = named(given, flavour);
  if (captures_stream(stream)) [[unlikely]]
    return ask();  // not memory of the graph: the driver refuses
  home->tape()->prefetch(address);
  const StreamSpot spot = line_on(guard, *home, stream);
  if (spot.line == kNoLine) [[unlikely]]
    return ask();
  const CUresult fault = fault_on(stream, spot.home);
  const CUresult result = give_back(guard, *home, row, address, spot.line, stream);
  return fault ? driver_said(*home, fault) : result;
}

}  // namespace

CUresult cuMemAllocAsync(CUdeviceptr* out, std::size_t bytes, CUstream stream) {
  return alloc(kRow_cuMemAllocAsync, Flavour::kLegacy, out, bytes, stream,
               [&] { return real::cuMemAllocAsync(out, bytes, stream); });
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr* out, std::size_t bytes, CUstream stream) {
  return alloc(kRow_cuMemAllocAsync_ptsz, Flavour::kPerThread, out, bytes, stream,
               [&] { return real::cuMemAllocAsync_ptsz(out, bytes, stream); });
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, std::size_t bytes, CUmemoryPool pool, CUstream stream) {
  return alloc_from(kRow_cuMemAllocFromPoolAsync, Flavour::kLegacy, out, bytes, pool, stream,
                    [&] { return real::cuMemAllocFromPoolAsync(out, bytes, pool, stream); });
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* out, std::size_t bytes, CUmemoryPool pool, CUstream stream) {
  return alloc_from(kRow_cuMemAllocFromPoolAsync_ptsz, Flavour::kPerThread, out, bytes, pool, stream,
                    [&] { return real::cuMemAllocFromPoolAsync_ptsz(out, bytes, pool, stream); });
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return free(kRow_cuMemFreeAsync, Flavour::kLegacy, address, stream,
              [&] { return real::cuMemFreeAsync(address, stream); });
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  return free(kRow_cuMemFreeAsync_ptsz, Flavour::kPerThread, address, stream,
              [&] { return real::cuMemFreeAsync_ptsz(address, stream); });
}

}  // namespace gpupool::hook
