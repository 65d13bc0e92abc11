// Through the driver alone: plain and stream-ordered calls in each flavour of stream 0, by dlsym and by
// cuGetProcAddress in both of its versions. Each block takes another way.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <dlfcn.h>

#include "tests/cases/ways/ways.h"

namespace {

void* library = nullptr;

template <class Function>
Function by_name(const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

template <class Function>
Function by_version(const char* base, int version, cuuint64_t flags) {
  const auto resolve = by_name<PFN_cuGetProcAddress_v12000>("cuGetProcAddress_v2");
  void* found = nullptr;
  CUdriverProcAddressQueryResult status;
  return resolve(base, &found, version, flags, &status) == CUDA_SUCCESS ? reinterpret_cast<Function>(found) : nullptr;
}

template <class Function>
Function by_old_version(const char* base, int version) {
  void* older = nullptr;
  const auto resolve = by_name<PFN_cuGetProcAddress_v12000>("cuGetProcAddress_v2");
  CUdriverProcAddressQueryResult status;
  resolve("cuGetProcAddress", &older, 11030, CU_GET_PROC_ADDRESS_DEFAULT, &status);
  void* found = nullptr;
  const auto resolve_old = reinterpret_cast<PFN_cuGetProcAddress_v11030>(older);
  resolve_old(base, &found, version, CU_GET_PROC_ADDRESS_DEFAULT);
  return reinterpret_cast<Function>(found);
}

using Allocate = PFN_cuMemAlloc_v3020;
using AllocateAsync = PFN_cuMemAllocAsync_v11020;
using Free = PFN_cuMemFree_v3020;
using FreeAsync = PFN_cuMemFreeAsync_v11020;

int allocate(int i, CUdeviceptr* out) {
  constexpr cuuint64_t kPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  switch (i) {
    case 0:
      return by_name<Allocate>("cuMemAlloc_v2")(out, bytes_of(i));
    case 1:
      return by_old_version<Allocate>("cuMemAlloc", 11030)(out, bytes_of(i));
    case 2:
      return by_name<AllocateAsync>("cuMemAllocAsync_ptsz")(out, bytes_of(i), nullptr);
    default:
      return by_version<AllocateAsync>("cuMemAllocAsync", 12000, kPerThread)(out, bytes_of(i), nullptr);
  }
}

int give(int i, CUdeviceptr block) {
  switch (i) {
    case 0:
      return by_name<Free>("cuMemFree_v2")(block);
    case 1:
      return by_version<Free>("cuMemFree", 12000, CU_GET_PROC_ADDRESS_DEFAULT)(block);
    case 2:
      return by_name<FreeAsync>("cuMemFreeAsync")(block, nullptr);
    default:
      return by_name<FreeAsync>("cuMemFreeAsync_ptsz")(block, nullptr);
  }
}

}  // namespace

int main() {
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) return std::printf("%s\n", dlerror()), 1;
  CUcontext context = nullptr;
  if (by_name<PFN_cuInit_v2000>("cuInit")(0) ||
      by_name<PFN_cuDevicePrimaryCtxRetain_v7000>("cuDevicePrimaryCtxRetain")(&context, 0) ||
      by_name<PFN_cuCtxSetCurrent_v4000>("cuCtxSetCurrent")(context))
    return std::printf("no context\n"), 1;
  return use_memory<CUdeviceptr>(allocate, give);
}
