// cuGetProcAddress's answers against a resolver that knows what a driver of CUDA 13 knows, and what a later one may
// know.
#include "preload/lookup.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <string>

#include "preload/hooks.h"
#include "tests/catch.h"

namespace {

// Addresses stand for functions: 1000 + row is the driver's, 2000 + row the hook's.
void* address(unsigned number) { return reinterpret_cast<void*>(std::uintptr_t{number}); }
unsigned number(void* function) { return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(function)); }
constexpr unsigned kDriver = 1000, kHook = 2000, kForeign = 5000;

unsigned row_named(const char* symbol) {
  unsigned row = 0;
  while (row < gpupool::kHookCount && std::strcmp(gpupool::kHooks[row].symbol, symbol) != 0) ++row;
  REQUIRE(row < gpupool::kHookCount);
  return row;
}

struct Driver {
  CUresult result = CUDA_SUCCESS;
  int foreign_from = 1 << 30;  // from this version on, every name means a function that hooks.def does not know
  int questions = 0;
} driver;

CUresult real_v2(const char* name, void** function, int version, cuuint64_t flags,
                 CUdriverProcAddressQueryResult* status) {
  ++driver.questions;
  if (driver.result != CUDA_SUCCESS) return driver.result;
  const unsigned row = gpupool::find_hook_row(name, version, flags);
  *function = row == gpupool::kHookCount       ? (std::strcmp(name, "cuInit") == 0 ? address(1) : nullptr)
              : version >= driver.foreign_from ? address(kForeign)
                                               : address(kDriver + row);
  if (status) *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
  return CUDA_SUCCESS;
}
CUresult real_v1(const char* name, void** function, int version, cuuint64_t flags) {
  return real_v2(name, function, version, flags, nullptr);
}

struct Fixture {
  void* hooks[gpupool::kHookCount];
  gpupool::ProcResolver resolver{real_v1, real_v2, hooks};
  Fixture() {
    driver = {};
    for (unsigned row = 0; row < gpupool::kHookCount; ++row) hooks[row] = address(kHook + row);
  }
  unsigned ask(const char* name, int version, cuuint64_t flags = 0) {
    void* function = address(77);
    CHECK(gpupool::get_proc_address_v2(resolver, name, &function, version, flags, nullptr) == CUDA_SUCCESS);
    void* by_v1 = address(77);
    CHECK(gpupool::get_proc_address(resolver, name, &by_v1, version, flags) == CUDA_SUCCESS);
    CHECK(by_v1 == function);
    return number(function);
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture,
                 "every row is found by its own base name, version and flavour, with one question to the driver") {
  for (unsigned row = 0; row < gpupool::kHookCount; ++row) {
    const gpupool::Hook& hook = gpupool::kHooks[row];
    INFO(hook.symbol);
    driver.questions = 0;
    CHECK(ask(hook.base, hook.version, hook.stream) == kHook + row);
    CHECK(driver.questions == 2);  // one for each spelling of cuGetProcAddress
  }
}

TEST_CASE_METHOD(Fixture, "the version decides between ABIs of one name") {
  const std::map<int, const char*> expected = {
      {2000, "cuCtxCreate"},     {3019, "cuCtxCreate"},     {3020, "cuCtxCreate_v2"},  {11030, "cuCtxCreate_v2"},
      {11040, "cuCtxCreate_v3"}, {12040, "cuCtxCreate_v3"}, {12050, "cuCtxCreate_v4"}, {13000, "cuCtxCreate_v4"}};
  for (const auto& [version, symbol] : expected) CHECK(ask("cuCtxCreate", version) == kHook + row_named(symbol));
  CHECK(ask("cuStreamBeginCapture", 10000) == kHook + row_named("cuStreamBeginCapture"));
  CHECK(ask("cuGetProcAddress", 11030) == kHook + row_named("cuGetProcAddress"));
  CHECK(ask("cuGetProcAddress", 12000) == kHook + row_named("cuGetProcAddress_v2"));
}

TEST_CASE_METHOD(Fixture, "the flags decide between flavours of stream 0") {
  const unsigned legacy = row_named("cuMemAllocAsync"), per_thread = row_named("cuMemAllocAsync_ptsz");
  CHECK(ask("cuMemAllocAsync", 12000, CU_GET_PROC_ADDRESS_DEFAULT) == kHook + legacy);
  CHECK(ask("cuMemAllocAsync", 12000, CU_GET_PROC_ADDRESS_LEGACY_STREAM) == kHook + legacy);
  CHECK(ask("cuMemAllocAsync", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) == kHook + per_thread);
  CHECK(ask("cuMemAlloc", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) == kHook + row_named("cuMemAlloc_v2"));
}

TEST_CASE_METHOD(Fixture, "too old a version, another name, and a row without a hook stay the driver's") {
  CHECK(ask("cuMemAlloc", 2000) == 0);
  CHECK(ask("cuInit", 12000) == 1);
  CHECK(ask("", 12000) == 0);
  CHECK(ask("cuMemAlloc_v2", 12000) == 0);
  const unsigned row = row_named("cuMemAlloc_v2");
  hooks[row] = nullptr;
  CHECK(ask("cuMemAlloc", 12000) == kDriver + row);
}

TEST_CASE_METHOD(Fixture, "a version that brings an unknown ABI is left alone; one that does not is hooked") {
  driver.foreign_from = 14000;
  CHECK(ask("cuMemAlloc", 13999) == kHook + row_named("cuMemAlloc_v2"));
  CHECK(ask("cuMemAlloc", 14000) == kForeign);
}

TEST_CASE_METHOD(Fixture, "the driver's status and refusals stand") {
  void* function = address(77);
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  CHECK(gpupool::get_proc_address_v2(resolver, "cuMemAlloc", &function, 2000, 0, &status) == CUDA_SUCCESS);
  CHECK(status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  CHECK(function == nullptr);
  driver.result = CUDA_ERROR_INVALID_VALUE;
  function = address(77);
  CHECK(gpupool::get_proc_address_v2(resolver, "cuMemAlloc", &function, 12000, 0, &status) == CUDA_ERROR_INVALID_VALUE);
  CHECK(gpupool::get_proc_address(resolver, "cuMemAlloc", &function, 12000, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(number(function) == 77);
}
