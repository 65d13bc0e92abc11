// Pairs (pairs.h) of PyTorch's caching allocator, called from C++.
//   torch LIVE PAIRS THREADS
#include <c10/cuda/CUDACachingAllocator.h>

#include "tests/gpu/pairs.h"

namespace {

struct Torch {
  cudaStream_t stream;
  void* take(std::size_t bytes) const { return c10::cuda::CUDACachingAllocator::raw_alloc_with_stream(bytes, stream); }
  void give(void* block, std::size_t) const { c10::cuda::CUDACachingAllocator::raw_delete(block); }
};

}  // namespace

int main(int count, char** words) {
  if (count != 4) return 2;
  const auto [live, pairs, threads] = gpu_pairs::Size::of(words + 1);
  c10::cuda::CUDACachingAllocator::init(1);
  gpu_pairs::play<Torch>(live, pairs, threads, [](cudaStream_t stream) { return Torch{stream}; });
  return 0;
}
