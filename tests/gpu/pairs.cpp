// Pairs (pairs.h) of the runtime's own calls.
//   pairs plain|ordered LIVE PAIRS THREADS
// `plain` is cudaMalloc and cudaFree, `ordered` cudaMallocAsync and cudaFreeAsync.
#include "tests/gpu/pairs.h"

#include <cstring>

namespace {

class Runtime {
 public:
  Runtime(bool ordered, cudaStream_t stream) : ordered_(ordered), stream_(stream) {}
  void* take(std::size_t bytes) {
    void* block = nullptr;
    return (ordered_ ? cudaMallocAsync(&block, bytes, stream_) : cudaMalloc(&block, bytes)) == cudaSuccess ? block
                                                                                                           : nullptr;
  }
  void give(void* block, std::size_t) {
    gpu_pairs::must((ordered_ ? cudaFreeAsync(block, stream_) : cudaFree(block)) == cudaSuccess, "a free");
  }

 private:
  bool ordered_;
  cudaStream_t stream_;
};

}  // namespace

int main(int count, char** words) {
  if (count != 5) return 2;
  const bool ordered = std::strcmp(words[1], "ordered") == 0;
  const auto [live, pairs, threads] = gpu_pairs::Size::of(words + 2);
  gpu_pairs::play<Runtime>(live, pairs, threads, [ordered](cudaStream_t stream) { return Runtime(ordered, stream); });
  return 0;
}
