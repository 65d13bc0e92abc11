// Through a runtime that the program opens and asks for its functions.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "tests/cases/ways/ways.h"

int main() {
  void* runtime = dlopen("libcudart.so.13", RTLD_NOW);
  if (!runtime) return std::printf("%s\n", dlerror()), 1;
  const auto allocate = reinterpret_cast<cudaError_t (*)(void**, std::size_t)>(dlsym(runtime, "cudaMalloc"));
  const auto give = reinterpret_cast<cudaError_t (*)(void*)>(dlsym(runtime, "cudaFree"));
  return use_memory<void*>([=](int i, void** out) { return static_cast<int>(allocate(out, bytes_of(i))); },
                           [=](int, void* block) { return static_cast<int>(give(block)); });
}
