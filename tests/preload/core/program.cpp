// See program.h.
#include "tests/preload/core/program.h"

namespace program {

CUcontext begin(CUdevice device) {
  CUcontext context = nullptr;
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, device));
  OK(cuCtxSetCurrent(context));
  return context;
}

std::size_t free_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  OK(cuMemGetInfo(&free, &total));
  HOLDS(free <= total);
  return free;
}

CUstream new_stream() {
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

CUcontext new_context() {
  CUcontext context = nullptr;
#if CUDA_VERSION >= 13000
  OK(cuCtxCreate(&context, nullptr, 0, 0));
#else
  OK(cuCtxCreate(&context, 0, 0));
#endif
  return context;
}

CUdeviceptr take(std::size_t bytes) {
  CUdeviceptr block = 0;
  OK(cuMemAlloc(&block, bytes));
  return block;
}

CUdeviceptr take_ordered(std::size_t bytes, CUstream stream) {
  CUdeviceptr block = 0;
  OK(cuMemAllocAsync(&block, bytes, stream));
  return block;
}

}  // namespace program

int main(int count, char** words) {
  const auto found = count == 2 ? program::cases().find(words[1]) : program::cases().end();
  if (found == program::cases().end()) {
    std::printf("usage: %s CASE\n", words[0]);
    return 2;
  }
  found->second();
  return program::failures() == 0 ? 0 : 1;
}
