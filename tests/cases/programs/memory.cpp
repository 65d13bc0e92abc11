// Sizes, alignment, pitch, wrong frees, and what cuMemGetInfo says, through the runtime where programs meet them there.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/preload/core/program.h"

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kGiB = std::size_t{1} << 30;

CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

void* take(std::size_t bytes) {
  void* block = nullptr;
  EQUAL(cudaMalloc(&block, bytes), cudaSuccess);
  return block;
}

void give(void* block) { EQUAL(cudaFree(block), cudaSuccess); }

std::size_t range_of(const void* block) {
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  OK(cuMemGetAddressRange(&base, &bytes, address(block)));
  EQUAL(base, address(block));
  return bytes;
}

// The next two blocks must be two: a free list that holds a block twice would hand it out twice.
void next_two_do_not_alias(std::size_t bytes) {
  void* first = take(bytes);
  void* second = take(bytes);
  HOLDS(address(first) + bytes <= address(second) || address(second) + bytes <= address(first));
  give(first);
  give(second);
}

std::size_t total_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  OK(cuMemGetInfo(&free, &total));
  HOLDS(free <= total);
  return total;
}

}  // namespace

CASE(alignment) {
  take(1);
  int wanted = 0;
  OK(cuDeviceGetAttribute(&wanted, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 0));
  if (wanted < 256) wanted = 256;
  for (std::size_t i = 0; i < 1000; ++i) {
    const std::size_t bytes = 1 + i * 4096 / 999;
    EQUAL(address(take(bytes)) % static_cast<unsigned>(wanted), 0u);
  }
}

CASE(pitched) {
  void* before = take(4096);
  EQUAL(cudaMemset(before, 1, 4096), cudaSuccess);
  void* block = nullptr;
  std::size_t pitch = 0;
  EQUAL(cudaMallocPitch(&block, &pitch, 200, 100), cudaSuccess);
  HOLDS(pitch >= 200 && pitch % 512 == 0);
  EQUAL(range_of(block), pitch * 100);
  void* after = take(4096);
  EQUAL(cudaMemset(after, 2, 4096), cudaSuccess);
  EQUAL(cudaMemset(block, 3, pitch * 100), cudaSuccess);  // to the last byte of the last row's padding
  unsigned char seen[2][4096];
  EQUAL(cudaMemcpy(seen[0], before, 4096, cudaMemcpyDeviceToHost), cudaSuccess);
  EQUAL(cudaMemcpy(seen[1], after, 4096, cudaMemcpyDeviceToHost), cudaSuccess);
  for (unsigned char byte : seen[0]) EQUAL(byte, 1);
  for (unsigned char byte : seen[1]) EQUAL(byte, 2);
  give(block);
  cudaPitchedPtr volume{};
  EQUAL(cudaMalloc3D(&volume, cudaExtent{200, 10, 10}), cudaSuccess);
  EQUAL(range_of(volume.ptr), volume.pitch * 100);
  give(volume.ptr);
  HOLDS(cudaMallocPitch(&block, &pitch, std::size_t{1} << 40, std::size_t{1} << 40) != cudaSuccess);
  HOLDS(cudaMallocPitch(&block, &pitch, SIZE_MAX - 100, 1) != cudaSuccess);
  HOLDS(cudaMalloc3D(&volume, cudaExtent{1 << 20, std::size_t{1} << 30, std::size_t{1} << 30}) != cudaSuccess);
  cudaGetLastError();
  next_two_do_not_alias(4096);
}

CASE(zero_size) {
  EQUAL(cudaFree(nullptr), cudaSuccess);  // the first call of the process: makes the context
  CUcontext context = nullptr;
  OK(cuCtxGetCurrent(&context));
  HOLDS(context != nullptr);
  for (int i = 0; i < 2; ++i) {
    void* block = reinterpret_cast<void*>(0x1234);
    EQUAL(cudaMalloc(&block, 0), cudaSuccess);
    HOLDS(block == nullptr);
    give(block);
  }
  CUdeviceptr driver_block = 77;
  EQUAL(cuMemAlloc(&driver_block, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cudaMalloc(static_cast<void**>(nullptr), 16), cudaErrorInvalidValue);
  EQUAL(cudaGetLastError(), cudaErrorInvalidValue);
  give(take(16));
}

CASE(wrong_frees) {
  void* block = take(4096);
  give(block);
  EQUAL(cudaFree(block), cudaErrorInvalidValue);
  next_two_do_not_alias(4096);
  int local = 0;
  EQUAL(cudaFree(&local), cudaErrorInvalidValue);
  EQUAL(cudaFree(reinterpret_cast<void*>(100)), cudaErrorInvalidValue);
  block = take(4096);
  EQUAL(cudaFree(static_cast<char*>(block) + 512), cudaErrorInvalidValue);
  EQUAL(cudaFree(static_cast<char*>(block) + 8), cudaErrorInvalidValue);
  give(block);
  next_two_do_not_alias(4096);
  // What the pool did not make is the driver's to free: managed memory, pinned memory, a large block sent past it.
  EQUAL(cudaMallocManaged(&block, 4096, cudaMemAttachGlobal), cudaSuccess);
  give(block);
  EQUAL(cudaFree(block), cudaErrorInvalidValue);
  EQUAL(cudaMallocHost(&block, 4096), cudaSuccess);
  EQUAL(cudaFree(block), cudaErrorInvalidValue);
  EQUAL(cudaFreeHost(block), cudaSuccess);
  give(take(64 * kMiB));
  // One mode for the other.
  EQUAL(cudaMallocAsync(&block, 4096, nullptr), cudaSuccess);
  give(block);
  block = take(4096);
  EQUAL(cudaFreeAsync(block, nullptr), cudaSuccess);
  EQUAL(cudaFreeAsync(block, nullptr), cudaErrorInvalidValue);
  cudaGetLastError();
  next_two_do_not_alias(4096);
}

// The first call of the process frees nothing; then cudaFree of everything that has an address on the device.
CASE(first_free) {
  EQUAL(cudaFree(nullptr), cudaSuccess);
  void* block = nullptr;
  EQUAL(cudaMallocManaged(&block, 4096, cudaMemAttachGlobal), cudaSuccess);
  give(block);
  EQUAL(cudaMallocAsync(&block, 4096, nullptr), cudaSuccess);
  give(block);
  CUdeviceptr driver_block = 0;
  OK(cuMemAlloc(&driver_block, 4096));
  give(reinterpret_cast<void*>(driver_block));
  block = take(4096);
  OK(cuMemFree(address(block)));
}

CASE(huge) {
  take(16);
  void* block = nullptr;
  for (std::size_t bytes : {SIZE_MAX, SIZE_MAX - 510, SIZE_MAX - 511, SIZE_MAX - 512, std::size_t{1} << 63}) {
    EQUAL(cudaMalloc(&block, bytes), cudaErrorMemoryAllocation);
    HOLDS(block == nullptr);
  }
  EQUAL(cudaGetLastError(), cudaErrorMemoryAllocation);
  std::size_t pitch = 0;
  HOLDS(cudaMallocPitch(&block, &pitch, (std::size_t{1} << 32) + 512, std::size_t{1} << 32) != cudaSuccess);
  // As many bytes as a row has, once what wraps is left out.
  HOLDS(cudaMallocPitch(&block, &pitch, std::size_t{1} << 20, (std::size_t{1} << 44) + 1) != cudaSuccess);
  cudaGetLastError();
  next_two_do_not_alias(4096);
  for (std::size_t bytes : {4 * kGiB, 4 * kGiB + 1}) {
    block = take(bytes);
    EQUAL(range_of(block), bytes);
    void* behind = take(512);
    HOLDS(address(behind) >= address(block) + bytes || address(behind) + 512 <= address(block));
    give(behind);
    give(block);
  }
}

// Requests of exactly the pool's size, step and limit, and one byte to either side (run with pool.size=100000001,
// pool.growth=64MiB, pool.max=256MiB).
CASE(exact_fits) {
  program::begin();
  for (std::size_t size : {std::size_t{100000001}, 64 * kMiB, 256 * kMiB}) {
    for (std::size_t bytes : {size - 1, size, size + 1}) {
      CUdeviceptr block = 0;
      OK(cuMemAlloc(&block, bytes));
      OK(cuMemFree(block));
      OK(cuCtxSynchronize());
    }
  }
  // All but a tail, then exactly the tail.
  CUdeviceptr most = 0;
  CUdeviceptr tail = 0;
  OK(cuMemAlloc(&most, 256 * kMiB - 1024));
  OK(cuMemAlloc(&tail, 1024 - 300));
  OK(cuMemFree(tail));
  OK(cuMemAlloc(&tail, 1024));
  OK(cuMemFree(most));
  OK(cuMemFree(tail));
}

CASE(steady_free) {
  program::begin();
  CUdeviceptr warm = 0;
  const std::size_t cold = program::free_memory();
  OK(cuMemAlloc(&warm, kMiB));
  const std::size_t before = program::free_memory();
  HOLDS(before <= cold);
  CUdeviceptr block = 0;
  OK(cuMemAlloc(&block, kGiB));
  const std::size_t during = program::free_memory();
  HOLDS(before - during >= kGiB);
  HOLDS(before - during <= kGiB + 64 * kMiB);
  OK(cuMemFree(block));
  const std::size_t after = program::free_memory();
  HOLDS(after <= before);
  HOLDS(before - after <= 64 * kMiB);
  for (int i = 0; i < 100; ++i) {
    OK(cuMemAlloc(&block, 10 * kMiB));
    HOLDS(program::free_memory() <= after);
    OK(cuMemFree(block));
  }
}

CASE(three_quarters) {
  program::begin();
  CUdeviceptr block = 0;
  OK(cuMemAlloc(&block, kMiB));  // half of the card is reserved now, and idle
  OK(cuMemFree(block));
  std::size_t physical = 0;
  OK(cuDeviceTotalMem(&physical, 0));
  EQUAL(total_memory(), physical);
  OK(cuMemAlloc(&block, physical / 4 * 3));
  EQUAL(total_memory(), physical);
  OK(cuMemFree(block));
}
