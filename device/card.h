// What the driver says about the card's memory, asked in a given context.
#pragma once

#include <string>

#include "device/driver_api.h"
#include "pool/backing.h"

namespace gpupool {

/// All zero when the context refuses (a sticky error, or it is gone). Leaves the current context as it was.
CardMemory card_memory_of(const DriverApi& api, CUcontext context);

/// "GPU-..." as nvidia-smi -L prints it, of a MIG slice its own; empty where the driver does not say.
std::string uuid_text(const DriverApi& api, CUdevice device);

}  // namespace gpupool
