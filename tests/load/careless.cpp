// A CUDA runtime that hands memory out too early: what was freed on one stream goes to the next of the same size on any
// other, without a wait between them. It stands in for the real one to show that the load sees such a fault. Everything
// else is the stand-in's, which this library needs and the loader therefore searches too. One thread.
#include <cuda_runtime_api.h>

#include <map>

namespace {

std::map<void*, size_t> g_sizes;
std::multimap<size_t, void*> g_freed;

}  // namespace

#pragma GCC visibility push(default)

cudaError_t cudaMallocAsync(void** out, size_t bytes, cudaStream_t) {
  if (const auto freed = g_freed.find(bytes); freed != g_freed.end()) {
    *out = freed->second;
    g_freed.erase(freed);
    return cudaSuccess;
  }
  const cudaError_t e = cudaMalloc(out, bytes);
  if (e == cudaSuccess) g_sizes[*out] = bytes;
  return e;
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) {
  g_freed.emplace(g_sizes[pointer], pointer);
  return cudaSuccess;
}

#pragma GCC visibility pop
