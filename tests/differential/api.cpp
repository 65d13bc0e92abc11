// See api.h.
#include "tests/differential/api.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace differential {
namespace {

class DriverApi : public Api {
 public:
  int alloc(CUdeviceptr* out, std::size_t bytes) override { return driver().cuMemAlloc_(out, bytes); }
  int alloc_pitch(CUdeviceptr* out, std::size_t* pitch, std::size_t width, std::size_t height) override {
    return driver().cuMemAllocPitch_(out, pitch, width, height, 4);
  }
  int alloc_3d(CUdeviceptr* out, std::size_t* pitch, std::size_t width, std::size_t height,
               std::size_t depth) override {
    return driver().cuMemAllocPitch_(out, pitch, width, height * depth, 16);
  }
  int alloc_async(CUdeviceptr* out, std::size_t bytes, CUstream stream) override {
    return driver().cuMemAllocAsync_(out, bytes, stream);
  }
  int alloc_from_pool(CUdeviceptr* out, std::size_t bytes, CUmemoryPool pool, CUstream stream) override {
    return driver().cuMemAllocFromPoolAsync_(out, bytes, pool, stream);
  }
  int free(CUdeviceptr block) override { return driver().cuMemFree_(block); }
  int free_async(CUdeviceptr block, CUstream stream) override { return driver().cuMemFreeAsync_(block, stream); }
  int info(std::size_t* free, std::size_t* total) override { return driver().cuMemGetInfo_(free, total); }
  int start() override {
    CUcontext context = nullptr;
    const int result = driver().cuDevicePrimaryCtxRetain_(&context, 0);
    if (result) return result;
    ++held_;
    return driver().cuCtxSetCurrent_(context);
  }
  int reset() override {
    held_ = 0;
    return driver().cuDevicePrimaryCtxReset_(0);
  }
  bool may_release() const override { return true; }
  int release_all() override {
    int result = 0;
    for (; held_ > 0 && result == 0; --held_) result = driver().cuDevicePrimaryCtxRelease_(0);
    return result;
  }
  int last_error() override { return 0; }

 private:
  unsigned held_ = 0;  // times that the primary context was retained since it began
};

// The names in the header are functions of the library that the program does not link.
struct Runtime {
#define FUNCTION(name) NotedAs<decltype(&::name)> name##_;
#include "tests/differential/runtime.def"
#undef FUNCTION
};

void** slot(CUdeviceptr* out) { return reinterpret_cast<void**>(out); }
void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

class RuntimeApi : public Api {
 public:
  explicit RuntimeApi(const Runtime& runtime) : runtime_(runtime) {}
  int alloc(CUdeviceptr* out, std::size_t bytes) override { return runtime_.cudaMalloc_(slot(out), bytes); }
  int alloc_pitch(CUdeviceptr* out, std::size_t* pitch, std::size_t width, std::size_t height) override {
    return runtime_.cudaMallocPitch_(slot(out), pitch, width, height);
  }
  int alloc_3d(CUdeviceptr* out, std::size_t* pitch, std::size_t width, std::size_t height,
               std::size_t depth) override {
    cudaPitchedPtr volume{};
    const int result = runtime_.cudaMalloc3D_(&volume, cudaExtent{width, height, depth});
    *out = reinterpret_cast<CUdeviceptr>(volume.ptr);
    *pitch = volume.pitch;
    return result;
  }
  int alloc_async(CUdeviceptr* out, std::size_t bytes, CUstream stream) override {
    return runtime_.cudaMallocAsync_(slot(out), bytes, stream);
  }
  int alloc_from_pool(CUdeviceptr* out, std::size_t bytes, CUmemoryPool pool, CUstream stream) override {
    return runtime_.cudaMallocFromPoolAsync_(slot(out), bytes, pool, stream);
  }
  int free(CUdeviceptr block) override { return runtime_.cudaFree_(pointer(block)); }
  int free_async(CUdeviceptr block, CUstream stream) override {
    return runtime_.cudaFreeAsync_(pointer(block), stream);
  }
  int info(std::size_t* free, std::size_t* total) override { return runtime_.cudaMemGetInfo_(free, total); }
  int start() override { return runtime_.cudaFree_(nullptr); }
  int reset() override { return runtime_.cudaDeviceReset_(); }
  bool may_release() const override { return false; }
  int release_all() override { return 0; }
  int last_error() override { return runtime_.cudaGetLastError_(); }

 private:
  Runtime runtime_;
};

}  // namespace

std::unique_ptr<Api> driver_api() { return std::make_unique<DriverApi>(); }

std::unique_ptr<Api> runtime_api(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW);
  if (!library) {
    std::fprintf(stderr, "differential: %s\n", dlerror());
    std::exit(2);
  }
  const auto look_up = [library](const char* name, auto& out) {
    out = {reinterpret_cast<decltype(out.function)>(dlsym(library, name)), name};
    if (out.function) return;
    std::fprintf(stderr, "differential: the runtime has no %s\n", name);
    std::exit(2);
  };
  Runtime found;
#define FUNCTION(name) look_up(#name, found.name##_);
#include "tests/differential/runtime.def"
#undef FUNCTION
  return std::make_unique<RuntimeApi>(found);
}

}  // namespace differential
