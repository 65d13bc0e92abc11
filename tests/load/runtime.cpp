// See runtime.h.
#include "tests/load/runtime.h"

#include <dlfcn.h>

#include <stdexcept>
#include <vector>

namespace gpupool::load {
namespace {

void* open_one(const std::vector<std::string>& names) {
  std::string errors;
  for (const std::string& name : names) {
    if (void* library = dlopen(name.c_str(), RTLD_NOW)) return library;
    errors += std::string{errors.empty() ? "" : "; "} + dlerror();
  }
  throw std::runtime_error("no CUDA runtime: " + errors);
}

template <class Function>
void find(void* library, const char* name, Function& out) {
  out = reinterpret_cast<Function>(dlsym(library, name));
  if (!out) throw std::runtime_error(std::string{"the CUDA runtime has no "} + name);
}

}  // namespace

Runtime::Runtime(const std::string& library) {
  void* const handle = open_one(library.empty() ? std::vector<std::string>{"libcudart.so.13", "libcudart.so.12"}
                                                : std::vector<std::string>{library});
#define CALL(name) find(handle, #name, name);
#include "tests/load/runtime.def"
#undef CALL
}

void Runtime::check(cudaError_t result, const char* what) const {
  if (result != cudaSuccess) throw std::runtime_error(std::string{what} + ": " + cudaGetErrorString(result));
}

}  // namespace gpupool::load
