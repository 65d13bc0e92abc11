// Pairs (pairs.h) of RMM's resources.
//   rmm pool|arena|async LIVE PAIRS THREADS
#include <cstring>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/cuda_async_memory_resource.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>

#include "tests/gpu/pairs.h"

namespace {

constexpr std::size_t kPool = std::size_t{16} << 30;
constexpr std::size_t kAlignment = 256;

template <class Resource>
struct Rmm {
  Resource* resource;
  rmm::cuda_stream_view stream;
  void* take(std::size_t bytes) const { return resource->allocate(stream, bytes, kAlignment); }
  void give(void* block, std::size_t bytes) const { resource->deallocate(stream, block, bytes, kAlignment); }
};

template <class Resource>
void play(Resource& resource, gpu_pairs::Size size) {
  gpu_pairs::play<Rmm<Resource>>(size.live, size.pairs, size.threads, [&](cudaStream_t stream) {
    return Rmm<Resource>{&resource, rmm::cuda_stream_view(stream)};
  });
}

}  // namespace

int main(int count, char** words) {
  if (count != 5) return 2;
  const gpu_pairs::Size size = gpu_pairs::Size::of(words + 2);
  rmm::mr::cuda_memory_resource upstream;
  if (std::strcmp(words[1], "pool") == 0) {
    rmm::mr::pool_memory_resource pool(upstream, kPool);
    play(pool, size);
  } else if (std::strcmp(words[1], "arena") == 0) {
    rmm::mr::arena_memory_resource arena(upstream, kPool);
    play(arena, size);
  } else {
    rmm::mr::cuda_async_memory_resource ordered(kPool);
    play(ordered, size);
  }
  return 0;
}
