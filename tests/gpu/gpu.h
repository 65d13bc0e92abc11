// The driver API as the small programs here use it: any failure ends the program, which says where. The kernels come
// from an image (kernels.cu), and each has run once before the program begins, because loading code may wait for the
// device. One context.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace gpu {

inline void must(CUresult result, const char* what, int line) {
  if (result == CUDA_SUCCESS) return;
  std::printf("line %d: %s answered %d\n", line, what, result);
  std::exit(1);
}
#define MUST(call) gpu::must(call, #call, __LINE__)

class Gpu {
 public:
  explicit Gpu(const char* image) {
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context_, 0));
    MUST(cuCtxSetCurrent(context_));
    CUmodule module = nullptr;
    MUST(cuModuleLoad(&module, image));
    MUST(cuModuleGetFunction(&fill_, module, "fill"));
    MUST(cuModuleGetFunction(&check_, module, "check"));
    MUST(cuModuleGetFunction(&spin_, module, "spin"));
    MUST(cuModuleGetFunction(&wait_flag_, module, "wait_flag"));
    MUST(cuModuleGetFunction(&set_flag_, module, "set_flag"));
    void* flag = nullptr;
    MUST(cuMemHostAlloc(&flag, sizeof *flag_, CU_MEMHOSTALLOC_DEVICEMAP));
    flag_ = static_cast<volatile std::uint32_t*>(flag);
    MUST(cuMemHostGetDevicePointer(&flag_at_, flag, 0));
    MUST(cuMemAlloc(&wrong_at_, sizeof(std::uint32_t)));
    reset();
    fill(wrong_at_, sizeof(std::uint32_t), 1, nullptr);
    check(wrong_at_, sizeof(std::uint32_t), 1, nullptr);
    spin(1, nullptr);
    set_flag(nullptr);
    wait_flag(nullptr);
    MUST(cuCtxSynchronize());
    reset();
  }

  /// For a further thread of the program, before its first call.
  void use_here() { MUST(cuCtxSetCurrent(context_)); }

  CUstream make_stream() {
    CUstream stream = nullptr;
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
  }

  void fill(CUdeviceptr to, std::uint64_t bytes, std::uint32_t seed, CUstream stream) {
    void* parameters[] = {&to, &bytes, &seed};
    launch(fill_, 256, stream, parameters);
  }
  /// Adds the number of wrong bytes to wrong().
  void check(CUdeviceptr at, std::uint64_t bytes, std::uint32_t seed, CUstream stream) {
    CUdeviceptr count = wrong_at_;
    void* parameters[] = {&at, &bytes, &seed, &count};
    launch(check_, 256, stream, parameters);
  }
  void spin(std::uint64_t microseconds, CUstream stream) {
    void* parameters[] = {&microseconds};
    launch(spin_, 1, stream, parameters);
  }
  void wait_flag(CUstream stream) {
    CUdeviceptr flag = flag_at_;
    void* parameters[] = {&flag};
    launch(wait_flag_, 1, stream, parameters);
  }
  void set_flag(CUstream stream) {
    CUdeviceptr flag = flag_at_;
    void* parameters[] = {&flag};
    launch(set_flag_, 1, stream, parameters);
  }
  void reset() {
    *flag_ = 0;
    MUST(cuMemsetD32(wrong_at_, 0, 1));
  }
  std::uint32_t wrong() const {
    std::uint32_t count = 0;
    MUST(cuMemcpyDtoH(&count, wrong_at_, sizeof count));
    return count;
  }

 private:
  static void launch(CUfunction kernel, unsigned blocks, CUstream stream, void** parameters) {
    const unsigned threads = blocks == 1 ? 1 : 256;
    MUST(cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, nullptr));
  }

  CUcontext context_ = nullptr;
  CUfunction fill_ = nullptr, check_ = nullptr, spin_ = nullptr, wait_flag_ = nullptr, set_flag_ = nullptr;
  volatile std::uint32_t* flag_ = nullptr;  // pinned host memory, seen by the device at flag_at_
  CUdeviceptr flag_at_ = 0;
  CUdeviceptr wrong_at_ = 0;
};

}  // namespace gpu
