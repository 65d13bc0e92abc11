// See card.h.
#include "device/card.h"

#include <cstddef>
#include <cstdio>

#include "device/context.h"

namespace gpupool {

CardMemory card_memory_of(const DriverApi& api, CUcontext context) {
  const ContextGuard current(api, context);
  std::size_t free = 0;
  std::size_t total = 0;
  if (!current.ok() || api.cuMemGetInfo_v2(&free, &total) != CUDA_SUCCESS) return {};
  return {free, total};
}

std::string uuid_text(const DriverApi& api, CUdevice device) {
  CUuuid uuid{};
  if (!api.cuDeviceGetUuid_v2 || api.cuDeviceGetUuid_v2(&uuid, device) != CUDA_SUCCESS) return "";
  std::string text = "GPU-";
  for (unsigned i = 0; i < sizeof uuid.bytes; ++i) {
    char pair[3];
    std::snprintf(pair, sizeof pair, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    text += pair;
    if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
  }
  return text;
}

}  // namespace gpupool
