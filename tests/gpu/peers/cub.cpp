// Pairs (pairs.h) of CUB's CachingDeviceAllocator, from the headers of the toolkit.
//   cub LIVE PAIRS THREADS
#include <cub/util_allocator.cuh>

#include "tests/gpu/pairs.h"

namespace {

struct Cub {
  cub::CachingDeviceAllocator* allocator;
  cudaStream_t stream;
  void* take(std::size_t bytes) const {
    void* block = nullptr;
    return allocator->DeviceAllocate(&block, bytes, stream) == cudaSuccess ? block : nullptr;
  }
  void give(void* block, std::size_t) const {
    cudaError_t answer = allocator->DeviceFree(block);
    // CUB answers with the last error of its own look at an event that was not done, and has freed nothing then.
    while (answer == cudaErrorNotReady) answer = allocator->DeviceFree(block);
    gpu_pairs::must(answer == cudaSuccess, "DeviceFree");
  }
};

}  // namespace

int main(int count, char** words) {
  if (count != 4) return 2;
  const auto [live, pairs, threads] = gpu_pairs::Size::of(words + 1);
  // Bins grow by 2 from 512 bytes to 128 KiB; nothing is given back.
  cub::CachingDeviceAllocator allocator(2, 9, 17, cub::CachingDeviceAllocator::INVALID_SIZE, true);
  gpu_pairs::play<Cub>(live, pairs, threads, [&](cudaStream_t stream) { return Cub{&allocator, stream}; });
  return 0;
}
