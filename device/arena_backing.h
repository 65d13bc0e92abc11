// The tape's memory where addresses cannot be chosen: each piece is a slab of cuMemAlloc with its own place. For
// devices without virtual memory management, and for what only cuMemAlloc memory can do (legacy IPC, SYNC_MEMOPS). The
// slab is IPC capable as it is. One per (context, device), called under its tape's lock. destroy() waits for the GPU
// inside the driver, as cuMemFree does.
#pragma once

#include "device/driver_api.h"
#include "pool/backing.h"

namespace gpupool {

class ArenaBacking final : public Backing {
 public:
  /// The slabs belong to `context` and die with it: destroy them before.
  ArenaBacking(const DriverApi& api, CUcontext context) : api_(api), context_(context) {}

  Placement placement() const override { return Placement::kGiven; }
  std::uint64_t granularity() const override { return std::uint64_t{2} << 20; }
  DriverAnswer reserve(std::uint64_t bytes, std::uint64_t& address) override;
  void unreserve(std::uint64_t address, std::uint64_t bytes) override;
  /// Location::kHost: CUDA_ERROR_NOT_SUPPORTED.
  DriverAnswer create(std::uint64_t bytes, Location location, Handle& handle) override;
  void destroy(const Handle& handle) override;
  DriverAnswer map(const Handle& handle, std::uint64_t address) override;
  DriverAnswer unmap(const Handle& handle, std::uint64_t address) override;
  CardMemory card_memory() override;

 private:
  const DriverApi& api_;
  CUcontext context_;
};

}  // namespace gpupool
