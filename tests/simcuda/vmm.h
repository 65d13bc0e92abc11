// Physical memory by handle, reserved addresses, and mappings between them. Guarded by the big lock.
#pragma once

#include "tests/simcuda/state.h"

namespace gpupool::sim {

// A new name for physical memory; each use of it is one reference, dropped by cuMemRelease.
CUmemGenericAllocationHandle add_vmm_handle(std::shared_ptr<Physical> physical);
std::shared_ptr<Physical> find_physical(CUmemGenericAllocationHandle handle);

}  // namespace gpupool::sim
