// The tape's memory on CUDA: one reserved range of addresses, physical handles mapped into it where the tape says.
// One per (context, device), called under its tape's lock, which add_peer() and remove_peer() need too (Tape::hold).
// None of the driver calls here waits for the GPU or disturbs a capture, and none but card_memory() needs a context: so
// memory can be mapped and given back from any thread, and still after its context is gone.
#pragma once

#include <atomic>
#include <map>
#include <vector>

#include "device/driver_api.h"
#include "pool/backing.h"

namespace gpupool {

class VmmBacking final : public Backing {
 public:
  /// Does this device do without cuMemAlloc? A question to ask before making one.
  static bool supported(const DriverApi& api, CUdevice device);

  /// `context` is where the program uses the memory, `device` its device. Makes no driver call that takes memory.
  VmmBacking(const DriverApi& api, CUcontext context, CUdevice device);

  Placement placement() const override { return Placement::kChosen; }
  std::uint64_t granularity() const override { return granularity_; }
  DriverAnswer reserve(std::uint64_t bytes, std::uint64_t& address) override;
  void unreserve(std::uint64_t address, std::uint64_t bytes) override;
  DriverAnswer create(std::uint64_t bytes, Location location, Handle& handle) override;
  void destroy(const Handle& handle) override;
  DriverAnswer map(const Handle& handle, std::uint64_t address) override;
  DriverAnswer unmap(const Handle& handle, std::uint64_t address) override;
  CardMemory card_memory() override;
  bool has_host_memory() const override { return !host_.empty(); }

  /// Can handles be sent to other processes? The device says so, and the driver has refused none yet.
  bool shareable() const { return shareable_.load(std::memory_order_relaxed); }
  /// A descriptor for another process's SharedRange (shared_range.h); the caller closes it.
  DriverAnswer share(const Handle& handle, int& descriptor) const;

  /// Lets another device reach all that is mapped, now and later. On failure nothing has changed. Twice is once.
  DriverAnswer add_peer(CUdevice peer);
  /// The reverse. The caller knows that no work of the peer can still reach the bytes.
  void remove_peer(CUdevice peer);

 private:
  CUmemAllocationProp properties(const CUmemLocation& location) const;
  CUresult set_access_everywhere(CUdevice device, CUmemAccess_flags access);

  const DriverApi& api_;
  CUcontext context_;
  CUdevice device_;
  const CUmemLocation card_;
  std::vector<CUmemLocation> host_;  // in the order in which they are tried; empty where the driver has none
  bool rdma_ = false;
  std::atomic<bool> shareable_{false};  // read by anyone
  std::uint64_t granularity_ = 0;
  std::vector<CUmemAccessDesc> access_;              // the own device, then the peers
  std::map<std::uint64_t, std::uint64_t> mappings_;  // address -> bytes
};

}  // namespace gpupool
