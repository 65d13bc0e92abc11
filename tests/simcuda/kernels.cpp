// Modules, libraries and the built-in kernels that every image contains, found by name (simcuda.h lists them).
#include <cstring>
#include <set>
#include <string>

#include "tests/simcuda/call.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/scheduler.h"
#include "tests/simcuda/simcuda.h"
#include "tests/simcuda/streams.h"

namespace gpupool::sim {

// A built-in kernel: how it reads its parameters into work.
struct Kernel {
  const char* name;
  Work (*prepare)(void** parameters);
};

namespace {

template <class T>
T parameter(void** parameters, int i) {
  T value;
  std::memcpy(&value, parameters[i], sizeof value);
  return value;
}

Work prepare_fill(void** p) {
  const auto to = parameter<CUdeviceptr>(p, 0);
  const auto bytes = parameter<uint64_t>(p, 1);
  const auto seed = parameter<uint32_t>(p, 2);
  Work work;
  work.accesses = {{to, bytes, Touch::kWrite, true}};
  work.run = [=] {
    auto* cells = reinterpret_cast<uint8_t*>(to);
    const uint64_t words = bytes / 4;
    for (uint64_t w = 0; w < words; ++w) {
      const uint32_t word = simcuda_pattern_word(seed, w);
      std::memcpy(cells + 4 * w, &word, sizeof word);
    }
    for (uint64_t i = 4 * words; i < bytes; ++i) cells[i] = simcuda_pattern(seed, i);
  };
  return work;
}

Work prepare_check(void** p) {
  const auto at = parameter<CUdeviceptr>(p, 0);
  const auto bytes = parameter<uint64_t>(p, 1);
  const auto seed = parameter<uint32_t>(p, 2);
  const auto count = parameter<CUdeviceptr>(p, 3);
  Work work;
  work.accesses = {{at, bytes, Touch::kRead, true},
                   {count, sizeof(uint32_t), Touch::kRead, true},
                   {count, sizeof(uint32_t), Touch::kWrite, true}};
  work.run = [=] {
    const auto* cells = reinterpret_cast<const uint8_t*>(at);
    uint32_t wrong = 0;
    uint64_t i = 0;
    while (i < bytes) {
      // Right words are passed over; a wrong one is counted byte by byte.
      if (uint32_t word; i % 4 == 0 && bytes - i >= 4) {
        std::memcpy(&word, cells + i, sizeof word);
        if (word == simcuda_pattern_word(seed, i / 4)) {
          i += 4;
          continue;
        }
      }
      wrong += cells[i] != simcuda_pattern(seed, i);
      ++i;
    }
    *reinterpret_cast<uint32_t*>(count) += wrong;
  };
  return work;
}

Work prepare_copy(void** p) {
  const auto to = parameter<CUdeviceptr>(p, 0);
  const auto from = parameter<CUdeviceptr>(p, 1);
  const auto bytes = parameter<uint64_t>(p, 2);
  Work work;
  work.accesses = {{to, bytes, Touch::kWrite, true}, {from, bytes, Touch::kRead, true}};
  work.run = [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); };
  return work;
}

Work prepare_spin(void** p) {
  Work work;
  work.ticks = std::max<uint64_t>(1, parameter<uint64_t>(p, 0));
  return work;
}

Work prepare_wait_flag(void** p) {
  const auto flag = parameter<CUdeviceptr>(p, 0);
  Work work;
  work.ready = [flag] {
    return !reachable(flag, sizeof(uint32_t), 0, nullptr) || *reinterpret_cast<volatile uint32_t*>(flag) != 0;
  };
  return work;
}

Work prepare_set_flag(void** p) {
  const auto flag = parameter<CUdeviceptr>(p, 0);
  Work work;
  work.accesses = {{flag, sizeof(uint32_t), Touch::kWrite, true}};
  work.run = [flag] { *reinterpret_cast<volatile uint32_t*>(flag) = 1; };
  return work;
}

Work prepare_fault(void**) {
  Work work;
  // Nothing is ever mapped at address 1.
  work.accesses = {{1, 1, Touch::kWrite, true}};
  return work;
}

Kernel g_kernels[] = {
    {"fill", prepare_fill},           {"check", prepare_check},       {"copy", prepare_copy},   {"spin", prepare_spin},
    {"wait_flag", prepare_wait_flag}, {"set_flag", prepare_set_flag}, {"fault", prepare_fault},
};

Kernel* find_kernel(const char* name) {
  for (Kernel& kernel : g_kernels) {
    if (std::strcmp(kernel.name, name) == 0) return &kernel;
  }
  return nullptr;
}

// Functions and kernels are the table's rows; modules and libraries are only counted.
Kernel* as_kernel(const void* handle) {
  for (Kernel& kernel : g_kernels) {
    if (&kernel == handle) return &kernel;
  }
  return nullptr;
}

std::set<void*>& images() {
  static auto* const instance = new std::set<void*>;
  return *instance;
}

CUresult load(void** out) {
  Context* context = nullptr;
  if (const CUresult e = current_context(context)) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = refuse_unsafe_call()) return e;
  *out = new char;
  images().insert(*out);
  return CUDA_SUCCESS;
}

CUresult unload(void* image) {
  if (!images().erase(image)) return CUDA_ERROR_INVALID_HANDLE;
  delete static_cast<char*>(image);
  return CUDA_SUCCESS;
}

CUresult load_module(CUmodule* out, const void* image) {
  return image ? load(reinterpret_cast<void**>(out)) : CUDA_ERROR_INVALID_VALUE;
}
CUresult load_module_file(CUmodule* out, const char* name) { return load_module(out, name); }
CUresult load_module_ex(CUmodule* out, const void* image, unsigned, CUjit_option*, void**) {
  return load_module(out, image);
}
CUresult unload_module(CUmodule module) { return unload(module); }

CUresult load_library(CUlibrary* out, const void* image, CUjit_option*, void**, unsigned, CUlibraryOption*, void**,
                      unsigned) {
  return image ? load(reinterpret_cast<void**>(out)) : CUDA_ERROR_INVALID_VALUE;
}
CUresult load_library_file(CUlibrary* out, const char* name, CUjit_option* a, void** b, unsigned c, CUlibraryOption* d,
                           void** e, unsigned f) {
  return load_library(out, name, a, b, c, d, e, f);
}
CUresult unload_library(CUlibrary library) { return unload(library); }

CUresult get(void** out, void* image, const char* name) {
  if (!out || !name) return CUDA_ERROR_INVALID_VALUE;
  if (!images().count(image)) return CUDA_ERROR_INVALID_HANDLE;
  *out = find_kernel(name);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult get_function(CUfunction* out, CUmodule module, const char* name) {
  return get(reinterpret_cast<void**>(out), module, name);
}
CUresult get_kernel(CUkernel* out, CUlibrary library, const char* name) {
  return get(reinterpret_cast<void**>(out), library, name);
}

CUresult kernel_function(CUfunction* out, CUkernel kernel) {
  if (!out || !as_kernel(kernel)) return CUDA_ERROR_INVALID_HANDLE;
  *out = reinterpret_cast<CUfunction>(kernel);
  return CUDA_SUCCESS;
}

CUresult library_module(CUmodule* out, CUlibrary library) {
  if (!out || !images().count(library)) return CUDA_ERROR_INVALID_HANDLE;
  *out = reinterpret_cast<CUmodule>(library);
  return CUDA_SUCCESS;
}

CUresult loading_mode(CUmoduleLoadingMode* out) {
  return out ? (*out = CU_MODULE_LAZY_LOADING, CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE;
}

CUresult function_attribute(int* out, CUfunction_attribute attribute, CUfunction function) {
  if (!out || !as_kernel(function)) return CUDA_ERROR_INVALID_HANDLE;
  *out = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0;
  return CUDA_SUCCESS;
}

CUresult set_function_attribute(CUfunction function, CUfunction_attribute, int) {
  return as_kernel(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult function_module(CUmodule* out, CUfunction function) {
  if (!out || !as_kernel(function) || images().empty()) return CUDA_ERROR_INVALID_HANDLE;
  *out = static_cast<CUmodule>(*images().begin());
  return CUDA_SUCCESS;
}

CUresult function_name(const char** out, CUfunction function) {
  const Kernel* kernel = as_kernel(function);
  if (!out || !kernel) return CUDA_ERROR_INVALID_HANDLE;
  *out = kernel->name;
  return CUDA_SUCCESS;
}

CUresult load_function(CUfunction function) { return as_kernel(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; }

CUresult launch(CUfunction function, CUstream stream, void** parameters) {
  const Kernel* kernel = as_kernel(function);
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  const bool has_parameters = std::strcmp(kernel->name, "fault") != 0;
  if (has_parameters && !parameters) return CUDA_ERROR_INVALID_VALUE;
  Work work = kernel->prepare(parameters);
  work.name = kernel->name;
  work.checks_peer_access = true;
  return submit(stream, CU_GRAPH_NODE_TYPE_KERNEL, std::move(work));
}

CUresult launch_ex(const CUlaunchConfig* config, CUfunction function, void** parameters, void**, CUstream stream) {
  return config ? launch(function, stream, parameters) : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace
}  // namespace gpupool::sim

using namespace gpupool::sim;

CUresult cuModuleLoad(CUmodule* out, const char* name) {
  return enter(Symbol::cuModuleLoad, load_module_file, out, name);
}
CUresult cuModuleLoadData(CUmodule* out, const void* image) {
  return enter(Symbol::cuModuleLoadData, load_module, out, image);
}
CUresult cuModuleLoadDataEx(CUmodule* out, const void* image, unsigned count, CUjit_option* options, void** values) {
  return enter(Symbol::cuModuleLoadDataEx, load_module_ex, out, image, count, options, values);
}
CUresult cuModuleLoadFatBinary(CUmodule* out, const void* image) {
  return enter(Symbol::cuModuleLoadFatBinary, load_module, out, image);
}
CUresult cuModuleUnload(CUmodule module) { return enter(Symbol::cuModuleUnload, unload_module, module); }
CUresult cuModuleGetFunction(CUfunction* out, CUmodule module, const char* name) {
  return enter(Symbol::cuModuleGetFunction, get_function, out, module, name);
}
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* out) {
  return enter(Symbol::cuModuleGetLoadingMode, loading_mode, out);
}
CUresult cuLibraryLoadData(CUlibrary* out, const void* image, CUjit_option* a, void** b, unsigned c, CUlibraryOption* d,
                           void** e, unsigned f) {
  return enter(Symbol::cuLibraryLoadData, load_library, out, image, a, b, c, d, e, f);
}
CUresult cuLibraryLoadFromFile(CUlibrary* out, const char* name, CUjit_option* a, void** b, unsigned c,
                               CUlibraryOption* d, void** e, unsigned f) {
  return enter(Symbol::cuLibraryLoadFromFile, load_library_file, out, name, a, b, c, d, e, f);
}
CUresult cuLibraryUnload(CUlibrary library) { return enter(Symbol::cuLibraryUnload, unload_library, library); }
CUresult cuLibraryGetKernel(CUkernel* out, CUlibrary library, const char* name) {
  return enter(Symbol::cuLibraryGetKernel, get_kernel, out, library, name);
}
CUresult cuLibraryGetModule(CUmodule* out, CUlibrary library) {
  return enter(Symbol::cuLibraryGetModule, library_module, out, library);
}
CUresult cuKernelGetFunction(CUfunction* out, CUkernel kernel) {
  return enter(Symbol::cuKernelGetFunction, kernel_function, out, kernel);
}
CUresult cuFuncGetAttribute(int* out, CUfunction_attribute a, CUfunction f) {
  return enter(Symbol::cuFuncGetAttribute, function_attribute, out, a, f);
}
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int value) {
  return enter(Symbol::cuFuncSetAttribute, set_function_attribute, f, a, value);
}
CUresult cuFuncGetModule(CUmodule* out, CUfunction f) {
  return enter(Symbol::cuFuncGetModule, function_module, out, f);
}
CUresult cuFuncGetName(const char** out, CUfunction f) { return enter(Symbol::cuFuncGetName, function_name, out, f); }
CUresult cuFuncLoad(CUfunction f) { return enter(Symbol::cuFuncLoad, load_function, f); }
CUresult cuLaunchKernel(CUfunction f, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream s,
                        void** parameters, void**) {
  return enter(Symbol::cuLaunchKernel, launch, f, legacy(s), parameters);
}
CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                             CUstream s, void** parameters, void**) {
  return enter(Symbol::cuLaunchKernel_ptsz, launch, f, per_thread(s), parameters);
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** parameters, void** extra) {
  return enter(Symbol::cuLaunchKernelEx, launch_ex, config, f, parameters, extra,
               legacy(config ? config->hStream : nullptr));
}
CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction f, void** parameters, void** extra) {
  return enter(Symbol::cuLaunchKernelEx_ptsz, launch_ex, config, f, parameters, extra,
               per_thread(config ? config->hStream : nullptr));
}
CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                   CUstream s, void** parameters) {
  return enter(Symbol::cuLaunchCooperativeKernel, launch, f, legacy(s), parameters);
}
CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                        unsigned, CUstream s, void** parameters) {
  return enter(Symbol::cuLaunchCooperativeKernel_ptsz, launch, f, per_thread(s), parameters);
}
