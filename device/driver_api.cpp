// Looks up the rows of driver_api.def. See driver_api.h.
#include "device/driver_api.h"

#include <cudaTypedefs.h>

#include <type_traits>

namespace gpupool {
namespace {

enum class Need { kRequired, kOptional };

using Resolve = decltype(&::cuGetProcAddress_v2);

/// Where the driver resolves names itself, its "no" counts: a library may export what its version does not support.
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
  const char* missing = nullptr;
#define DRIVER(symbol, base, version, need)                                                            \
  symbol = reinterpret_cast<decltype(symbol)>(find(lookup, driver, resolve, #symbol, #base, version)); \
  if (!symbol && !missing && Need::need == Need::kRequired) missing = #symbol;
#include "device/driver_api.def"
#undef DRIVER
  return missing;
}

}  // namespace gpupool
