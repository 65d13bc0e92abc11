// See arena_backing.h.
#include "device/arena_backing.h"

#include "device/card.h"
#include "device/context.h"

namespace gpupool {

DriverAnswer ArenaBacking::reserve(std::uint64_t, std::uint64_t& address) {
  address = 0;
  return {};
}

void ArenaBacking::unreserve(std::uint64_t, std::uint64_t) {}

DriverAnswer ArenaBacking::create(std::uint64_t bytes, Location location, Handle& handle) {
  if (location == Location::kHost) return {CUDA_ERROR_NOT_SUPPORTED};
  const ContextGuard current(api_, context_);
  if (!current.ok()) return {current.result()};
  const RelaxedCaptureGuard relaxed(api_);
  CUdeviceptr address = 0;
  const CUresult result = api_.cuMemAlloc_v2(&address, bytes);
  if (result == CUDA_SUCCESS) handle = {address, bytes, address, Location::kDevice};
  return {result};
}

void ArenaBacking::destroy(const Handle& handle) {
  const ContextGuard current(api_, context_);
  if (!current.ok()) return;
  const RelaxedCaptureGuard relaxed(api_);
  api_.cuMemFree_v2(handle.address);
}

DriverAnswer ArenaBacking::map(const Handle&, std::uint64_t) { return {}; }

DriverAnswer ArenaBacking::unmap(const Handle&, std::uint64_t) { return {}; }

CardMemory ArenaBacking::card_memory() { return card_memory_of(api_, context_); }

}  // namespace gpupool
