// The simulated driver's kernels by name, for programs that look at data: fill and check patterns, take time, fault.
// The count of wrong bytes lies in device memory and is read at the end.
#pragma once

#include <cstdint>

#include "tests/preload/core/program.h"

namespace program {

class Kernels {
 public:
  Kernels() {
    OK(cuModuleLoadData(&module_, "kernels"));
    OK(cuMemAlloc(&wrong_, 4));
    OK(cuMemsetD32(wrong_, 0, 1));
  }
  void fill(CUstream stream, CUdeviceptr to, std::uint64_t bytes, std::uint32_t seed) {
    void* parameters[] = {&to, &bytes, &seed};
    launch("fill", stream, parameters);
  }
  void check(CUstream stream, CUdeviceptr at, std::uint64_t bytes, std::uint32_t seed) {
    void* parameters[] = {&at, &bytes, &seed, &wrong_};
    launch("check", stream, parameters);
  }
  void spin(CUstream stream, std::uint64_t ticks) {
    void* parameters[] = {&ticks};
    launch("spin", stream, parameters);
  }
  void wait_flag(CUstream stream, CUdeviceptr flag) {
    void* parameters[] = {&flag};
    launch("wait_flag", stream, parameters);
  }
  void set_flag(CUstream stream, CUdeviceptr flag) {
    void* parameters[] = {&flag};
    launch("set_flag", stream, parameters);
  }
  void fault(CUstream stream) { launch("fault", stream, nullptr); }
  std::uint32_t wrong_bytes() {
    OK(cuCtxSynchronize());
    std::uint32_t count = 0;
    OK(cuMemcpyDtoH(&count, wrong_, 4));
    return count;
  }

 private:
  void launch(const char* name, CUstream stream, void** parameters) {
    CUfunction function = nullptr;
    OK(cuModuleGetFunction(&function, module_, name));
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
  }

  CUmodule module_ = nullptr;
  CUdeviceptr wrong_ = 0;
};

}  // namespace program
