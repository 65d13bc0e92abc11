// A core for the front's tests: marks what passes through it, so that a program sees whether its call was hooked, and
// how often.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "preload/front/abi.h"
#include "preload/lookup.h"

#ifndef FRONT_TEST_ABI
#define FRONT_TEST_ABI GPUPOOL_FRONT_ABI
#endif

namespace {

constexpr unsigned long long kMark = 0x100000;

CUresult (*real_alloc)(CUdeviceptr*, size_t);
CUresult (*real_alloc_async)(CUdeviceptr*, size_t, CUstream);
CUresult (*real_alloc_async_ptsz)(CUdeviceptr*, size_t, CUstream);
gpupool::ProcResolver resolver;

CUresult alloc(CUdeviceptr* block, size_t bytes) {
  const CUresult result = real_alloc(block, bytes);
  *block += kMark;
  return result;
}
CUresult alloc_async(CUdeviceptr* block, size_t bytes, CUstream stream) {
  const CUresult result = real_alloc_async(block, bytes, stream);
  *block += kMark;
  return result;
}
CUresult alloc_async_ptsz(CUdeviceptr* block, size_t bytes, CUstream stream) {
  const CUresult result = real_alloc_async_ptsz(block, bytes, stream);
  *block += kMark;
  return result;
}
CUresult proc_address(const char* name, void** function, int version, cuuint64_t flags) {
  return gpupool::get_proc_address(resolver, name, function, version, flags);
}
CUresult proc_address_v2(const char* name, void** function, int version, cuuint64_t flags,
                         CUdriverProcAddressQueryResult* status) {
  return gpupool::get_proc_address_v2(resolver, name, function, version, flags, status);
}

template <typename Function>
void take(const gpupool_front* front, Function& function, const char* name) {
  function = reinterpret_cast<Function>(front->real_dlsym(front->driver, name));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int gpupool_core_start(const gpupool_front* front, void** hooks) {
  if (front->abi != FRONT_TEST_ABI || front->hook_count != gpupool::kHookCount) return GPUPOOL_CORE_OF_ANOTHER_BUILD;
  const size_t length = std::strlen(front->directory);
  if (length < 2 || front->directory[0] != '/' || front->directory[length - 1] != '/') return 1;

  take(front, real_alloc, "cuMemAlloc_v2");
  take(front, real_alloc_async, "cuMemAllocAsync");
  take(front, real_alloc_async_ptsz, "cuMemAllocAsync_ptsz");
  take(front, resolver.real_v1, "cuGetProcAddress");
  take(front, resolver.real_v2, "cuGetProcAddress_v2");
  resolver.hooks = hooks;

  // A hooked call in the middle of the start reaches the driver.
  auto early = reinterpret_cast<decltype(real_alloc)>(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
  CUdeviceptr block = 0;
  if (!early || early(&block, 1) != CUDA_SUCCESS || (block & kMark) != 0) return 3;

  // A child forked in the middle of the start does not wait for a starter that it does not have.
  if (std::getenv("FRONT_TEST_FORK")) {
    const pid_t child = fork();
    if (child == 0) _exit(early(&block, 2) == CUDA_SUCCESS && (block & kMark) == 0 ? 0 : 1);
    int status = 1;
    if (waitpid(child, &status, 0) != child || status != 0) return 4;
  }

  for (unsigned row = 0; row < gpupool::kHookCount; ++row) {
    const char* symbol = gpupool::kHooks[row].symbol;
    if (!std::strcmp(symbol, "cuMemAlloc_v2")) hooks[row] = reinterpret_cast<void*>(alloc);
    if (!std::strcmp(symbol, "cuMemAllocAsync")) hooks[row] = reinterpret_cast<void*>(alloc_async);
    if (!std::strcmp(symbol, "cuMemAllocAsync_ptsz")) hooks[row] = reinterpret_cast<void*>(alloc_async_ptsz);
    if (!std::strcmp(symbol, "cuGetProcAddress")) hooks[row] = reinterpret_cast<void*>(proc_address);
    if (!std::strcmp(symbol, "cuGetProcAddress_v2")) hooks[row] = reinterpret_cast<void*>(proc_address_v2);
  }
  if (std::getenv("FRONT_TEST_COUNT")) std::fprintf(stderr, "core started\n");
  return 0;
}
