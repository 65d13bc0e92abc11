// What pool.guard=on is for: writes behind a block's end, and reads of freed bytes.
#include <vector>

#include "tests/preload/core/kernels.h"

namespace {

// Whoever calls next makes the pool look at what has arrived.
void call_again() {
  OK(cuCtxSynchronize());
  CUdeviceptr block = 0;
  OK(cuMemAlloc(&block, 64));
  OK(cuMemFree(block));
  OK(cuCtxSynchronize());
}

}  // namespace

// The second request, one byte behind its 1000.
CASE(guard_plain) {
  program::begin();
  CUdeviceptr before = 0;
  CUdeviceptr block = 0;
  OK(cuMemAlloc(&before, 1 << 20));
  OK(cuMemAlloc(&block, 1000));
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  OK(cuMemGetAddressRange(&base, &bytes, block + 999));
  EQUAL(base, block);
  EQUAL(bytes, 1000u);
  const CUstream stream = program::new_stream();
  OK(cuMemsetD8Async(block + 1000, 0, 1, stream));
  OK(cuMemFree(block));
  OK(cuMemFree(before));
  call_again();
}

// Two streams; the block goes from one to the other, which writes the last byte of a zone of 512 and one of the next.
CASE(guard_async) {
  program::begin();
  program::Kernels kernels;  // one request
  const CUstream first = program::new_stream();
  const CUstream second = program::new_stream();
  CUdeviceptr block = 0;
  CUdeviceptr right = 0;
  OK(cuMemAllocAsync(&block, 4096, first));
  OK(cuMemAllocAsync(&right, 4096, second));
  kernels.spin(first, 100);
  CUevent event = nullptr;
  OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  OK(cuEventRecord(event, first));
  OK(cuStreamWaitEvent(second, event, 0));
  OK(cuMemsetD8Async(block + 4096 + 100, 7, 3, second));
  OK(cuMemFreeAsync(block, second));
  OK(cuMemFreeAsync(right, second));
  call_again();
}

// Freed bytes are poisoned in order: what was submitted before the free does not see it, and the next owner writes over
// it.
CASE(guard_poison) {
  program::begin();
  program::Kernels kernels;
  const CUstream stream = program::new_stream();
  for (std::uint32_t round = 1; round < 50; ++round) {
    CUdeviceptr block = 0;
    if (round % 2)
      OK(cuMemAlloc(&block, 5000));
    else
      OK(cuMemAllocAsync(&block, 5000, stream));
    kernels.fill(stream, block, 5000, round);
    kernels.spin(stream, 50);
    kernels.check(stream, block, 5000, round);
    if (round % 3)
      OK(cuMemFree(block));
    else
      OK(cuMemFreeAsync(block, stream));
  }
  CUdeviceptr stale = 0;
  OK(cuMemAlloc(&stale, 300));
  OK(cuMemFree(stale));
  EQUAL(kernels.wrong_bytes(), 0u);
  std::vector<unsigned char> bytes(300);
  OK(cuMemcpyDtoH(bytes.data(), stale, bytes.size()));
  for (const unsigned char byte : bytes) EQUAL(byte, 0xFF);
}
