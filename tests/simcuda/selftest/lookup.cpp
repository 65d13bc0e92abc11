// cuGetProcAddress.
#include <dlfcn.h>

#include "tests/simcuda/selftest/helpers.h"

namespace {

struct Found {
  CUresult result;
  void* function;
  CUdriverProcAddressQueryResult status;
};

Found look_up(const char* base, int version, cuuint64_t flags = 0) {
  Found found{};
  found.result = cuGetProcAddress(base, &found.function, version, flags, &found.status);
  return found;
}

void* symbol(const char* name) {
  void* found = dlsym(RTLD_DEFAULT, name);
  REQUIRE(found);
  return found;
}

}  // namespace

TEST_CASE("base name and version choose the symbol", "[lookup]") {
  CHECK(look_up("cuMemAlloc", 3020).function == symbol("cuMemAlloc_v2"));
  CHECK(look_up("cuMemAlloc", 13000).function == symbol("cuMemAlloc_v2"));
  CHECK(look_up("cuCtxCreate", 3020).function == symbol("cuCtxCreate_v2"));
  CHECK(look_up("cuCtxCreate", 11040).function == symbol("cuCtxCreate_v3"));
  CHECK(look_up("cuCtxCreate", 13000).function == symbol("cuCtxCreate_v4"));
  CHECK(look_up("cuDevicePrimaryCtxReset", 7000).function == symbol("cuDevicePrimaryCtxReset"));
  CHECK(look_up("cuDevicePrimaryCtxReset", 11000).function == symbol("cuDevicePrimaryCtxReset_v2"));
  CHECK(look_up("cuGetProcAddress", 11030).function == symbol("cuGetProcAddress"));
  CHECK(look_up("cuGetProcAddress", 12000).function == symbol("cuGetProcAddress_v2"));
}

TEST_CASE("flags choose the variant for per-thread default streams", "[lookup]") {
  CHECK(look_up("cuMemAllocAsync", 11020, 0).function == symbol("cuMemAllocAsync"));
  CHECK(look_up("cuMemAllocAsync", 11020, CU_GET_PROC_ADDRESS_LEGACY_STREAM).function == symbol("cuMemAllocAsync"));
  CHECK(look_up("cuMemAllocAsync", 11020, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM).function ==
        symbol("cuMemAllocAsync_ptsz"));
  CHECK(look_up("cuMemcpyHtoD", 7000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM).function ==
        symbol("cuMemcpyHtoD_v2_ptds"));
  CHECK(look_up("cuMemAlloc", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM).function ==
        symbol("cuMemAlloc_v2"));
}

TEST_CASE("what is not found is said", "[lookup]") {
  CHECK(look_up("", 13000).function == nullptr);
  CHECK(look_up("cuNoSuchThing", 13000).status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  CHECK(look_up("cuMemAllocAsync", 11000).status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  void* function = nullptr;
  CHECK(cuGetProcAddress("cuNoSuchThing", &function, 13000, 0, nullptr) == CUDA_ERROR_NOT_FOUND);
  CHECK(cuGetProcAddress("cuInit", &function, 13000, 8, nullptr) == CUDA_ERROR_INVALID_VALUE);
}
