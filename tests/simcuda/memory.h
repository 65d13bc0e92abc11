// Allocations that the program knows by address: how they come into being and go. Guarded by the big lock.
#pragma once

#include "tests/simcuda/state.h"

namespace gpupool::sim {

// Plain memory of the card, known to allocations and reachable by its device.
CUresult allocate_plain(Context& context, uint64_t bytes, MemoryKind kind, CUdeviceptr& out);

// Enters an allocation into the books.
Allocation& add_allocation(CUdeviceptr start, uint64_t size, MemoryKind kind, Context* context, int device);
// Plain memory that is out of the books already goes back to the card.
void release_plain(const Allocation& gone);
// Takes it out of the books and its memory back.
void remove_allocation(CUdeviceptr start);

// All devices there are: who reaches host and managed memory.
std::set<int> all_devices();

// Unmaps what cuMemAllocManaged or cuMemHostAlloc (host_memory.cpp), or an import (ipc.cpp) mapped.
void unmap_host(const Allocation& allocation);
void unmap_imported(const Allocation& allocation);

}  // namespace gpupool::sim
