// How the runtime finds the driver: dlopen, one dlsym, then everything through cuGetProcAddress. A program without a
// driver gets cudaErrorInsufficientDriver from every call.
#include <dlfcn.h>

#include <mutex>
#include <set>

#include "tests/simcuda/cudart/runtime.h"

namespace gpupool::standin {
namespace {

struct Runtime {
  Driver plain;
  Driver per_thread;
  cudaError_t error = cudaErrorInsufficientDriver;
};

template <class Function>
void look_up(PFN_cuGetProcAddress_v12000 resolver, const char* base, int version, cuuint64_t flags, Function& out) {
  void* found = nullptr;
  if (resolver(base, &found, version, flags, nullptr) == CUDA_SUCCESS) out = reinterpret_cast<Function>(found);
}

PFN_cuGetProcAddress_v12000 find_resolver(Runtime& runtime) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) return nullptr;
  auto first = reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(library, "cuGetProcAddress_v2"));
  if (!first) return nullptr;
  void* nothing = nullptr;
  first("", &nothing, CUDA_VERSION, CU_GET_PROC_ADDRESS_DEFAULT, nullptr);
  PFN_cuInit_v2000 init = nullptr;
  look_up(first, "cuInit", 2000, CU_GET_PROC_ADDRESS_DEFAULT, init);
  if (!init) return nullptr;
  runtime.error = static_cast<cudaError_t>(init(0));
  PFN_cuGetProcAddress_v11030 old_resolver = nullptr;
  PFN_cuGetProcAddress_v12000 resolver = nullptr;
  look_up(first, "cuGetProcAddress", 11030, CU_GET_PROC_ADDRESS_DEFAULT, old_resolver);
  look_up(first, "cuGetProcAddress", 12000, CU_GET_PROC_ADDRESS_DEFAULT, resolver);
  return resolver;
}

Runtime make_runtime() {
  Runtime runtime;
  const auto resolver = find_resolver(runtime);
  if (!resolver) return runtime;
  runtime.plain.get_proc_address = runtime.per_thread.get_proc_address = resolver;
  constexpr cuuint64_t kPlain = CU_GET_PROC_ADDRESS_DEFAULT;
  constexpr cuuint64_t kPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
#define PLAIN(base, version)                                        \
  look_up(resolver, #base, version, kPlain, runtime.plain.base##_); \
  runtime.per_thread.base##_ = runtime.plain.base##_;
#define STREAM(base, version, per_thread_version)                   \
  look_up(resolver, #base, version, kPlain, runtime.plain.base##_); \
  look_up(resolver, #base, per_thread_version, kPerThread, runtime.per_thread.base##_);
#include "tests/simcuda/cudart/driver_lookups.def"
#undef PLAIN
#undef STREAM
  return runtime;
}

Runtime& runtime() {
  static Runtime* const instance = new Runtime(make_runtime());
  return *instance;
}

thread_local int t_device = 0;
thread_local cudaError_t t_last_error = cudaSuccess;

std::mutex& context_lock() {
  static std::mutex* const lock = new std::mutex;
  return *lock;
}

// Devices whose primary context is retained, and which one it is.
CUcontext g_contexts[64];

}  // namespace

const Driver& driver() { return runtime().plain; }
const Driver& driver_per_thread() { return runtime().per_thread; }
cudaError_t start_driver() { return runtime().error; }

cudaError_t start() {
  if (const cudaError_t e = start_driver()) return e;
  CUcontext current = nullptr;
  if (const CUresult e = driver().cuCtxGetCurrent_(&current)) return static_cast<cudaError_t>(e);
  const std::lock_guard lock(context_lock());
  CUcontext& mine = g_contexts[t_device];
  if (mine && current) return cudaSuccess;
  if (!mine) {
    if (const CUresult e = driver().cuDevicePrimaryCtxRetain_(&mine, t_device)) return static_cast<cudaError_t>(e);
  }
  return static_cast<cudaError_t>(driver().cuCtxSetCurrent_(mine));
}

void forget_context(int device) {
  const std::lock_guard lock(context_lock());
  g_contexts[device] = nullptr;
}

int current_device() { return t_device; }

void set_current_device(int device) {
  t_device = device;
  driver().cuCtxSetCurrent_(nullptr);
}

cudaError_t finish(cudaError_t result) {
  if (result != cudaSuccess) t_last_error = result;
  return result;
}

// The runtime's numbers are the driver's.
cudaError_t finish(CUresult result) { return finish(static_cast<cudaError_t>(result)); }

}  // namespace gpupool::standin

using namespace gpupool::standin;

cudaError_t cudaGetLastError() {
  const cudaError_t last = t_last_error;
  t_last_error = cudaSuccess;
  return last;
}

cudaError_t cudaPeekAtLastError() { return t_last_error; }
