// See card.h.
#include "device/card.h"

#include <cstddef>

#include "device/context.h"

namespace gpupool {

CardMemory card_memory_of(const DriverApi& api, CUcontext context) {
  const ContextGuard current(api, context);
  std::size_t free = 0;
  std::size_t total = 0;
  if (!current.ok() || api.cuMemGetInfo_v2(&free, &total) != CUDA_SUCCESS) return {};
  return {free, total};
}

}  // namespace gpupool
