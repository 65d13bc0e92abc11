// The driver's own stream-ordered pools. Guarded by the big lock.
#pragma once

#include <map>
#include <vector>

#include "tests/simcuda/pool_memory.h"
#include "tests/simcuda/state.h"

namespace gpupool::sim {

// A pooled block goes back at once: the caller has waited.
void return_to_pool(const Allocation& allocation);

// The card's default pool (made at the first use) and the one that cuMemAllocAsync uses.
CUmemoryPool default_pool(Device& device);
CUmemoryPool current_pool(Device& device);

CUmemoryPool make_pool(Device& device, const CUmemPoolProps& props);
// Gives the card what is free beyond `keep` bytes.
void trim_pool(CUmemoryPool pool, uint64_t keep);
// Frees the pool when nothing is allocated from it any more, at the latest when its last block is freed.
void destroy_pool(CUmemoryPool pool);
// What is free beyond the release thresholds goes back to the card: at every synchronisation.
void trim_idle_pools(Device& device);

}  // namespace gpupool::sim

struct CUmemPoolHandle_st {
  gpupool::sim::Device* device = nullptr;
  CUmemPoolProps props{};
  int reuse_event_dependencies = 1;
  int reuse_opportunistic = 1;
  int reuse_internal_dependencies = 1;
  uint64_t release_threshold = 0;
  uint64_t reserved_high = 0;
  uint64_t used = 0;
  uint64_t used_high = 0;
  bool destroyed = false;
  std::set<int> devices;  // that may touch its memory
  gpupool::sim::PoolMemory memory;
  // Freed on a stream that has not come to the free yet.
  struct Pending {
    CUdeviceptr start;
    uint64_t size;
    uint64_t stream;
    gpupool::sim::OpRef op;
  };
  std::vector<Pending> pending;
};
