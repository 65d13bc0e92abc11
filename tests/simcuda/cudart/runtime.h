// The inside of the stand-in runtime: the driver's functions, found as NVIDIA's runtime finds them, the thread's device
// and its last error. Lives in whatever library or program it is linked into; the driver is found at the first call,
// never earlier.
#pragma once

#include <type_traits>

#pragma GCC visibility push(default)
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

// The first version of this function, which the runtime asks for; the header names its type only to itself.
using PFN_cuDevicePrimaryCtxReset_v7000 = PFN_cuDevicePrimaryCtxReset_v11000;

namespace gpupool::standin {

struct Driver {
  PFN_cuGetProcAddress_v12000 get_proc_address = nullptr;
#define PLAIN(base, version) PFN_##base##_v##version base##_ = nullptr;
#define STREAM(base, version, per_thread_version) PFN_##base##_v##version base##_ = nullptr;
#include "tests/simcuda/cudart/driver_lookups.def"
#undef PLAIN
#undef STREAM
};

// Two tables: default streams as the legacy one, and as the thread's own. Both are empty if there is no driver.
const Driver& driver();
const Driver& driver_per_thread();

// Finds the driver and makes sure that a context is current; the result of every call that needs one.
cudaError_t start();
// The driver alone, for calls that must not make a context.
cudaError_t start_driver();

// Remembers an error as the thread's last one, and returns it. A missing driver function is "not supported" before it
// is called.
cudaError_t finish(cudaError_t result);
cudaError_t finish(CUresult result);

// The one shape of a runtime function: have a context, call the driver, remember the error.
template <class Function, class... A>
cudaError_t call(Function Driver::*function, const Driver& table, A... args) {
  if (const cudaError_t e = start()) return finish(e);
  return table.*function ? finish((table.*function)(args...)) : finish(cudaErrorNotSupported);
}
template <class Function, class... A>
cudaError_t call(Function Driver::*function, A... args) requires(std::is_invocable_v<Function, A...>) {
  return call(function, driver(), args...);
}

// The context of a reset device is gone: the next call makes a new one.
void forget_context(int device);
int current_device();
void set_current_device(int device);

inline CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

}  // namespace gpupool::standin
