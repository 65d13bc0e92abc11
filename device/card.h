// What the driver says about the card's memory, asked in a given context.
#pragma once

#include "device/driver_api.h"
#include "pool/backing.h"

namespace gpupool {

/// All zero when the context refuses (a sticky error, or it is gone). Leaves the current context as it was.
CardMemory card_memory_of(const DriverApi& api, CUcontext context);

}  // namespace gpupool
