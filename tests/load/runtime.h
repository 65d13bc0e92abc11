// The CUDA runtime, found when the load starts: one program serves NVIDIA's on a card and the stand-in on the simulated
// driver. The types are those of CUDA's headers; nothing of CUDA is linked.
#pragma once
#include <cuda_runtime_api.h>

#include <string>

namespace gpupool::load {

struct Runtime {
  /// A file or a name for the loader; empty tries the names of CUDA 13 and 12. Throws std::runtime_error.
  explicit Runtime(const std::string& library);

  /// Throws std::runtime_error with the runtime's own words.
  void check(cudaError_t result, const char* what) const;

#define CALL(name) decltype(&::name) name = nullptr;
#include "tests/load/runtime.def"
#undef CALL
};

}  // namespace gpupool::load
