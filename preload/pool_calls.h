// From the driver's handles of memory pools to ours (memory_pools.h), asking the driver where we do not know yet.
#pragma once

#include "preload/real.h"

#include "preload/guard.h"
#include "preload/memory_pools.h"
#include "preload/process.h"

namespace gpupool {

/// The pool that cuMemAllocAsync uses on a device; null: the driver's business (exportable, managed, or the device has
/// none).
MemoryPool* find_current_pool(const Guard& guard, CUdevice device);
inline MemoryPool* current_pool(const Guard& guard, CUdevice device) {
  MemoryPool* pool = nullptr;
  if (process().pools.current(device, pool) == MemoryPools::Current::kOurs) [[likely]]
    return pool;
  return find_current_pool(guard, device);
}

/// The pool of a handle; null: not ours. Finds a device's default pool even when the program has it from elsewhere.
MemoryPool* known_pool(const Guard& guard, CUmemoryPool handle);

}  // namespace gpupool
