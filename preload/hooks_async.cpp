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

// Stream-ordered memory is the device's, not a context's: it lies on the primary context's tape where there is one, and
// so outlives the context whose stream asked for it.
StreamSpot ordered_spot(const Guard& guard, CUstream stream, std::uint64_t bytes) {
  const StreamSpot spot = spot_of(guard, stream, bytes);
  if (!spot.home || spot.home->owner() == Home::Owner::kPrimary) return spot;
  Home* primary = process().registry.of_primary(spot.home->device());
  return primary ? StreamSpot{primary, line_on(guard, *primary, stream)} : spot;
}

// Counts a request in its pool, whether the tape serves it or the driver in its place: to the program it is one pool.
template <class Serve>
CUresult counted(MemoryPool& pool, std::uint64_t bytes, Serve serve) {
  if (!pool.take(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = serve();
  if (result == CUDA_SUCCESS)
    pool.served();
  else
    pool.give_back(bytes);
  return result;
}

template <class Ask>
CUresult from_pool(const Guard& guard, Home& home, Line line, CUstream stream, MemoryPool& pool, HookRow row,
                   std::uint64_t bytes, CUdeviceptr* out, Ask ask) {
  const Request request{
      .bytes = bytes, .line = line, .tag = pool.tag(), .may_wait = pool.may_wait(), .own_free = home.own_free()};
  // Slabs of cuMemAlloc cannot be opened to another device as a memory pool can.
  const bool drivers = pool.opened() && !home.movable();
  return counted(pool, bytes, [&] {
    return drivers ? pass_through(guard, row, bytes, out, ask, {line, pool.tag()})
                   : serve(guard, home, request, row, out, ask, stream);
  });
}

template <class Ask>
CUresult alloc(HookRow row, Flavour flavour, CUdeviceptr* out, std::size_t bytes, CUstream given, Ask ask) {
  const Guard guard;
  if (!serveable(guard, out, bytes)) return ask();
  const CUstream stream = named(given, flavour);
  if (captures_stream(stream)) return watched(guard, row, bytes, ask);
  const StreamSpot spot = ordered_spot(guard, stream, bytes);
  MemoryPool* pool = spot.home ? current_pool(guard, spot.home->device()) : nullptr;
  if (!pool) return pass_through(guard, row, bytes, out, ask, {name_for_trace(stream)});
  if (const CUresult fault = fault_on(stream)) return driver_said(*spot.home, fault);
  return from_pool(guard, *spot.home, spot.line, stream, *pool, row, bytes, out, ask);
}

template <class Ask>
CUresult alloc_from(HookRow row, Flavour flavour, CUdeviceptr* out, std::size_t bytes, CUmemoryPool handle,
                    CUstream given, Ask ask) {
  const Guard guard;
  if (!serveable(guard, out, bytes)) return ask();
  const CUstream stream = named(given, flavour);
  if (captures_stream(stream)) return watched(guard, row, bytes, ask);
  MemoryPool* pool = known_pool(guard, handle);
  const StreamSpot spot = pool ? ordered_spot(guard, stream, bytes) : StreamSpot{};
  if (!spot.home) return pass_through(guard, row, bytes, out, ask, {name_for_trace(stream)});
  if (const CUresult fault = fault_on(stream)) return driver_said(*spot.home, fault);
  if (spot.home->device() == pool->device())
    return from_pool(guard, *spot.home, spot.line, stream, *pool, row, bytes, out, ask);
  // A pool's memory lies on the pool's device, whatever device the stream belongs to.
  Home* home = process().registry.of_primary(pool->device());
  if (!home) {
    return counted(*pool, bytes, [&] {
      return pass_through(guard, row, bytes, out, ask, {name_for_trace(stream), pool->tag()});
    });
  }
  return from_pool(guard, *home, line_on(guard, *home, stream), stream, *pool, row, bytes, out, ask);
}

template <class Ask>
CUresult free(HookRow row, Flavour flavour, CUdeviceptr address, CUstream given, Ask ask) {
  const Guard guard;
  if (guard.nested()) return ask();
  Home* home = process().registry.at(address);
  if (!home) return pass_free(guard, row, address, ask);
  const CUstream stream = named(given, flavour);
  if (captures_stream(stream)) return ask();  // not memory of the graph: the driver refuses
  const CUresult fault = fault_on(stream);
  const CUresult result = give_back(guard, *home, row, address, line_on(guard, *home, stream), stream);
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
