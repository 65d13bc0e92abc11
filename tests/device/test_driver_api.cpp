// The table of driver functions: where the pointers come from, and what is missing when something is.
#include "device/driver_api.h"

#include <dlfcn.h>

#include <cstring>
#include <string>

#include "tests/catch.h"
#include "tests/device/driver.h"

namespace gpupool::test {
namespace {

void* lookup(void* library, const char* name) { return dlsym(library, name); }
void* nothing(void*, const char*) { return nullptr; }
/// A driver of before cuGetProcAddress and everything newer.
void* old_lookup(void* library, const char* name) {
  for (const char* newer : {"cuGetProcAddress_v2", "cuCtxRecordEvent", "cuCtxGetId", "cuMemCreate"}) {
    if (std::strcmp(name, newer) == 0) return nullptr;
  }
  return dlsym(library, name);
}

void* library() {
  void* opened = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  REQUIRE(opened != nullptr);
  return opened;
}

}  // namespace

TEST_CASE("a driver of today has every row", "[driver_api]") {
  DriverApi api;
  REQUIRE(api.load(lookup, library()) == nullptr);
#define DRIVER(symbol, base, version, need) CHECK(api.symbol != nullptr);
#include "device/driver_api.def"
#undef DRIVER
  CHECK(api.has_vmm());
  CHECK(api.has_context_events());
  int version = 0;
  CHECK(api.cuDriverGetVersion(&version) == CUDA_SUCCESS);
  CHECK(version >= 12050);
}

TEST_CASE("an old driver lacks what is optional, and that is known", "[driver_api]") {
  DriverApi api;
  REQUIRE(api.load(old_lookup, library()) == nullptr);
  CHECK_FALSE(api.has_vmm());
  CHECK_FALSE(api.has_context_events());
  CHECK(api.cuCtxGetId == nullptr);
  CHECK(api.cuMemAlloc_v2 != nullptr);
}

TEST_CASE("the first missing function is named", "[driver_api]") {
  DriverApi api;
  const char* missing = api.load(nothing, nullptr);
  REQUIRE(missing != nullptr);
  CHECK(std::string(missing) == "cuDriverGetVersion");
}

}  // namespace gpupool::test
