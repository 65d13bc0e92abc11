// Through the runtime, linked as a library or into the program; built once for each.
#include <cuda_runtime_api.h>

#include "tests/cases/ways/ways.h"

int main() {
  return use_memory<void*>([](int i, void** out) { return static_cast<int>(cudaMalloc(out, bytes_of(i))); },
                           [](int, void* block) { return static_cast<int>(cudaFree(block)); });
}
