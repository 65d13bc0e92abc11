// A CUDA program that allocates, writes, copies, reads back and frees, the same for every way in which a program can
// reach the driver. CLIENT says which: one executable per way. Its one line of output depends on the bytes that it read
// back and on nothing else, so it must be the same with and without the preload. One thread; seeded.
//   -DCLIENT=1  the runtime, linked, shared or static    -DCLIENT=2  the runtime, by dlopen and dlsym
//   -DCLIENT=3  the driver, linked    4  the driver, by dlsym    5  the driver, by cuGetProcAddress
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

namespace {

void must(int result, const char* what) {
  if (result == 0) return;
  std::printf("client: %s answered %d\n", what, result);
  std::exit(1);
}

void* symbol(void* library, const char* name) {
  void* found = library ? dlsym(library, name) : nullptr;
  if (!found) must(-1, name);
  return found;
}

using Address = std::uint64_t;

#if CLIENT <= 2

struct Gpu {
#if CLIENT == 1
#define USE(name) decltype(&::name) name##_ = &::name;
#else
  void* library = dlopen("libcudart.so.13", RTLD_NOW);
#define USE(name) decltype(&::name) name##_ = reinterpret_cast<decltype(&::name)>(symbol(library, #name));
#endif
  USE(cudaFree)
  USE(cudaMemset)
  USE(cudaMemcpy)
  USE(cudaStreamSynchronize)
#undef USE
  // Overloaded for C++: the plain ones are named by their types.
  using Malloc = cudaError_t (*)(void**, size_t);
  using MallocAsync = cudaError_t (*)(void**, size_t, cudaStream_t);
  using FreeAsync = cudaError_t (*)(void*, cudaStream_t);
#if CLIENT == 1
  Malloc cudaMalloc_ = &::cudaMalloc;
  MallocAsync cudaMallocAsync_ = &::cudaMallocAsync;
  FreeAsync cudaFreeAsync_ = &::cudaFreeAsync;
#else
  Malloc cudaMalloc_ = reinterpret_cast<Malloc>(symbol(library, "cudaMalloc"));
  MallocAsync cudaMallocAsync_ = reinterpret_cast<MallocAsync>(symbol(library, "cudaMallocAsync"));
  FreeAsync cudaFreeAsync_ = reinterpret_cast<FreeAsync>(symbol(library, "cudaFreeAsync"));
#endif

  static void* pointer(Address at) { return reinterpret_cast<void*>(at); }

  Address allocate(std::size_t bytes, bool ordered) {
    void* at = nullptr;
    must(ordered ? cudaMallocAsync_(&at, bytes, nullptr) : cudaMalloc_(&at, bytes), "an allocation");
    return reinterpret_cast<Address>(at);
  }
  void release(Address at, bool ordered) {
    must(ordered ? cudaFreeAsync_(pointer(at), nullptr) : cudaFree_(pointer(at)), "a free");
  }
  void set(Address at, unsigned char value, std::size_t bytes) {
    must(cudaMemset_(pointer(at), value, bytes), "cudaMemset");
  }
  void copy(Address to, Address from, std::size_t bytes) {
    must(cudaMemcpy_(pointer(to), pointer(from), bytes, cudaMemcpyDeviceToDevice), "cudaMemcpy");
  }
  void read(void* to, Address from, std::size_t bytes) {
    must(cudaMemcpy_(to, pointer(from), bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
  }
  void finish() { must(cudaStreamSynchronize_(nullptr), "cudaStreamSynchronize"); }
};

#else

struct Gpu {
#if CLIENT == 3
#define USE(name, exported, version) PFN_##name##_v##version name##_ = &::exported;
#elif CLIENT == 4
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
#define USE(name, exported, version) \
  PFN_##name##_v##version name##_ = reinterpret_cast<PFN_##name##_v##version>(symbol(library, #exported));
#else
  PFN_cuGetProcAddress_v12000 resolve =
      reinterpret_cast<PFN_cuGetProcAddress_v12000>(symbol(dlopen("libcuda.so.1", RTLD_NOW), "cuGetProcAddress_v2"));
  void* by_name(const char* name, int version) {
    void* found = nullptr;
    must(resolve(name, &found, version, CU_GET_PROC_ADDRESS_DEFAULT, nullptr), name);
    return found;
  }
#define USE(name, exported, version) \
  PFN_##name##_v##version name##_ = reinterpret_cast<PFN_##name##_v##version>(by_name(#name, version));
#endif
  USE(cuInit, cuInit, 2000)
  USE(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000)
  USE(cuCtxSetCurrent, cuCtxSetCurrent, 4000)
  USE(cuMemAlloc, cuMemAlloc_v2, 3020)
  USE(cuMemFree, cuMemFree_v2, 3020)
  USE(cuMemAllocAsync, cuMemAllocAsync, 11020)
  USE(cuMemFreeAsync, cuMemFreeAsync, 11020)
  USE(cuMemsetD8, cuMemsetD8_v2, 3020)
  USE(cuMemcpyDtoD, cuMemcpyDtoD_v2, 3020)
  USE(cuMemcpyDtoH, cuMemcpyDtoH_v2, 3020)
  USE(cuStreamSynchronize, cuStreamSynchronize, 2000)
#undef USE

  Gpu() {
    CUcontext context = nullptr;
    must(cuInit_(0), "cuInit");
    must(cuDevicePrimaryCtxRetain_(&context, 0), "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent_(context), "cuCtxSetCurrent");
  }
  Address allocate(std::size_t bytes, bool ordered) {
    CUdeviceptr at = 0;
    must(ordered ? cuMemAllocAsync_(&at, bytes, nullptr) : cuMemAlloc_(&at, bytes), "an allocation");
    return at;
  }
  void release(Address at, bool ordered) { must(ordered ? cuMemFreeAsync_(at, nullptr) : cuMemFree_(at), "a free"); }
  void set(Address at, unsigned char value, std::size_t bytes) { must(cuMemsetD8_(at, value, bytes), "cuMemsetD8"); }
  void copy(Address to, Address from, std::size_t bytes) { must(cuMemcpyDtoD_(to, from, bytes), "cuMemcpyDtoD"); }
  void read(void* to, Address from, std::size_t bytes) { must(cuMemcpyDtoH_(to, from, bytes), "cuMemcpyDtoH"); }
  void finish() { must(cuStreamSynchronize_(nullptr), "cuStreamSynchronize"); }
};

#endif

struct Block {
  Address at;
  std::size_t bytes;
  unsigned char value;
  bool ordered;
};

}  // namespace

int main() {
  Gpu gpu;
  std::uint32_t state = 12345;
  const auto random = [&state](std::uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
  };
  std::vector<Block> blocks;
  std::vector<unsigned char> bytes;
  std::uint64_t wrong = 0;
  std::uint64_t sum = 0;
  std::uint64_t taken = 0;
  const auto check = [&](const Block& block) {
    bytes.resize(block.bytes);
    gpu.read(bytes.data(), block.at, block.bytes);
    for (const unsigned char byte : bytes) {
      wrong += byte != block.value;
      sum = sum * 31 + byte;
    }
  };
  for (int step = 0; step < 1500; ++step) {
    if (blocks.size() < 20 || (blocks.size() < 60 && random(2) == 0)) {
      const std::size_t size = 1 + random(random(8) == 0 ? 3'000'000 : 60'000);
      const bool ordered = random(2) == 0;
      const auto value = static_cast<unsigned char>(random(256));
      blocks.push_back({gpu.allocate(size, ordered), size, value, ordered});
      gpu.set(blocks.back().at, value, size);
      taken += size;
      continue;
    }
    Block& from = blocks[random(static_cast<std::uint32_t>(blocks.size()))];
    Block& to = blocks[random(static_cast<std::uint32_t>(blocks.size()))];
    if (from.at != to.at && from.bytes >= to.bytes) {
      gpu.copy(to.at, from.at, to.bytes);
      to.value = from.value;
    }
    std::swap(to, blocks.back());
    check(blocks.back());
    gpu.release(blocks.back().at, blocks.back().ordered);
    blocks.pop_back();
  }
  for (const Block& block : blocks) check(block);
  for (const Block& block : blocks) gpu.release(block.at, block.ordered);
  gpu.finish();
  std::printf("client: %llu bytes taken, sum %016llx, %llu wrong\n", static_cast<unsigned long long>(taken),
              static_cast<unsigned long long>(sum), static_cast<unsigned long long>(wrong));
  return wrong == 0 ? 0 : 1;
}
