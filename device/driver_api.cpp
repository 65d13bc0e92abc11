// Looks up the rows of driver_api.def. See driver_api.h.
#include "device/driver_api.h"

#include <cudaTypedefs.h>

#include <type_traits>

namespace gpupool {
namespace {

enum class Need { kRequired, kOptional };

using Resolve = decltype(&::cuGetProcAddress_v2);

/// Where the driver resolves names itself, its "no" counts: a library may export what its version does not support.
/// Only ask for what is no newer than the driver: for a newer ABI of a name it would answer with the newest that it
/// has.
void* find(DriverApi::Lookup lookup, void* driver, Resolve resolve, const char* symbol, const char* base, int version) {
  if (!resolve) return lookup(driver, symbol);
  void* found = nullptr;
  CUdriverProcAddressQueryResult status{};
  return resolve(base, &found, version, CU_GET_PROC_ADDRESS_DEFAULT, &status) == CUDA_SUCCESS ? found : nullptr;
}

// A row whose version names another ABI than its symbol does not compile.
#define DRIVER(symbol, base, version, need) static_assert(std::is_same_v<decltype(&::symbol), PFN_##base##_v##version>);
#include "device/driver_api.def"
#undef DRIVER

}  // namespace

const char* DriverApi::load(Lookup lookup, void* driver) {
  const auto resolve = reinterpret_cast<Resolve>(lookup(driver, "cuGetProcAddress_v2"));
  const auto ask_version = reinterpret_cast<decltype(&::cuDriverGetVersion)>(lookup(driver, "cuDriverGetVersion"));
  int newest = 0;
  if (ask_version && ask_version(&newest) != CUDA_SUCCESS) newest = 0;
  const char* missing = nullptr;
#define DRIVER(symbol, base, version, need)                                                              \
  if (version <= newest)                                                                                 \
    symbol = reinterpret_cast<decltype(symbol)>(find(lookup, driver, resolve, #symbol, #base, version)); \
  if (!symbol && !missing && Need::need == Need::kRequired) missing = #symbol;
#include "device/driver_api.def"
#undef DRIVER
  return missing;
}

}  // namespace gpupool
