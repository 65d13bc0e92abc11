// Looks up the rows of driver_api.def. See driver_api.h.
#include "device/driver_api.h"

namespace gpupool {
namespace {

enum class Need { kRequired, kOptional };

void* find(DriverApi::Lookup lookup, void* driver, decltype(&::cuGetProcAddress_v2) resolve, const char* symbol,
           const char* base, int version) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult status{};
  if (resolve && resolve(base, &found, version, CU_GET_PROC_ADDRESS_DEFAULT, &status) == CUDA_SUCCESS && found)
    return found;
  return lookup(driver, symbol);
}

}  // namespace

const char* DriverApi::load(Lookup lookup, void* driver) {
  const auto resolve = reinterpret_cast<decltype(&::cuGetProcAddress_v2)>(lookup(driver, "cuGetProcAddress_v2"));
  const char* missing = nullptr;
#define DRIVER(symbol, base, version, need)                                                            \
  symbol = reinterpret_cast<decltype(symbol)>(find(lookup, driver, resolve, #symbol, #base, version)); \
  if (!symbol && !missing && Need::need == Need::kRequired) missing = #symbol;
#include "device/driver_api.def"
#undef DRIVER
  return missing;
}

}  // namespace gpupool
