// The promise of reuse, seen in the data: the simulated streams execute late, so a block that is handed out too early
// holds the wrong bytes at the end. Every case writes with one owner after another and lets the device check what the
// last one finds.
#include <atomic>
#include <cstdint>
#include <thread>

#include "tests/preload/core/kernels.h"

namespace {

using program::Kernels;

constexpr std::uint64_t kBytes = 1 << 20;

}  // namespace

CASE(order_plain) {
  program::begin();
  Kernels kernels;
  const CUstream first = program::new_stream();
  const CUstream second = program::new_stream();
  CUdeviceptr before = 0;
  for (std::uint32_t round = 0; round < 20; ++round) {
    CUdeviceptr block = 0;
    OK(cuMemAlloc(&block, kBytes));
    kernels.spin(first, 1000);
    kernels.fill(first, block, kBytes, round);  // still to come when the block is freed
    OK(cuMemFree(block));
    CUdeviceptr next = 0;
    OK(cuMemAlloc(&next, kBytes));
    kernels.fill(second, next, kBytes, 1000 + round);
    kernels.check(second, next, kBytes, 1000 + round);
    kernels.spin(second, 2000);
    kernels.check(second, next, kBytes, 1000 + round);
    before = next;
    OK(cuMemFree(before));
  }
  EQUAL(kernels.wrong_bytes(), 0u);
}

// The block was cleaned for the context by a wait; a context made later has not seen that wait.
CASE(order_late_context) {
  const CUcontext first = program::begin();
  Kernels kernels;
  const CUstream writer = program::new_stream();
  CUdeviceptr block = 0;
  OK(cuMemAlloc(&block, kBytes));
  kernels.fill(writer, block, kBytes, 7);  // still to come when the block is freed
  OK(cuMemFree(block));
  CUdeviceptr next = 0;
  OK(cuMemAlloc(&next, kBytes));
  CUcontext late = nullptr;
  OK(cuCtxCreate(&late, nullptr, 0, 0));
  {
    Kernels there;
    const CUstream owner = program::new_stream();
    there.fill(owner, next, kBytes, 9);
    OK(cuStreamSynchronize(owner));
    OK(cuCtxSynchronize());
  }
  OK(cuCtxSetCurrent(first));
  OK(cuCtxSynchronize());
  const CUstream reader = program::new_stream();
  kernels.check(reader, next, kBytes, 9);
  OK(cuStreamSynchronize(reader));
  EQUAL(kernels.wrong_bytes(), 0u);
}

// Memory of the primary context, freed on a stream that goes with its context before the free was recorded.
CASE(order_stream_of_gone_context) {
  const CUcontext first = program::begin();
  CUdeviceptr kept = 0;
  CUdeviceptr block = 0;
  OK(cuMemAlloc(&kept, kBytes));
  OK(cuMemAlloc(&block, kBytes));
  CUcontext other = nullptr;
  OK(cuCtxCreate(&other, nullptr, 0, 0));
  OK(cuMemFreeAsync(block, program::new_stream()));
  OK(cuCtxDestroy(other));
  OK(cuCtxSetCurrent(first));
  CUdeviceptr next = 0;
  OK(cuMemAlloc(&next, kBytes));
  OK(cuMemFree(next));
  OK(cuMemFree(kept));
}

CASE(order_async) {
  program::begin();
  Kernels kernels;
  const CUstream first = program::new_stream();
  const CUstream second = program::new_stream();
  for (std::uint32_t round = 0; round < 20; ++round) {
    CUdeviceptr block = 0;
    OK(cuMemAllocAsync(&block, kBytes, first));
    kernels.spin(first, 1000);
    kernels.fill(first, block, kBytes, round);
    OK(cuMemFreeAsync(block, first));
    CUdeviceptr next = 0;
    OK(cuMemAllocAsync(&next, kBytes, second));
    kernels.fill(second, next, kBytes, 1000 + round);
    kernels.spin(second, 2000);
    kernels.check(second, next, kBytes, 1000 + round);
    OK(cuMemFreeAsync(next, second));
  }
  EQUAL(kernels.wrong_bytes(), 0u);
}

CASE(order_destroyed_stream) {
  program::begin();
  Kernels kernels;
  for (std::uint32_t round = 0; round < 10; ++round) {
    const CUstream stream = program::new_stream();
    CUdeviceptr block = 0;
    OK(cuMemAllocAsync(&block, kBytes, stream));
    kernels.spin(stream, 1000);
    kernels.fill(stream, block, kBytes, round);
    OK(cuMemFreeAsync(block, stream));
    OK(cuStreamDestroy(stream));  // its work is still to come
    const CUstream other = program::new_stream();
    CUdeviceptr next = 0;
    OK(cuMemAllocAsync(&next, kBytes, other));
    kernels.fill(other, next, kBytes, 1000 + round);
    kernels.spin(other, 2000);
    kernels.check(other, next, kBytes, 1000 + round);
    OK(cuMemFreeAsync(next, other));
  }
  EQUAL(kernels.wrong_bytes(), 0u);
}

// Natively, and with pool.reuse=sync: what the GPU wrote before a cudaFree can be read after it.
CASE(free_waits) {
  program::begin();
  Kernels kernels;
  const CUstream stream = program::new_stream();
  std::uint32_t* seen = nullptr;
  OK(cuMemHostAlloc(reinterpret_cast<void**>(&seen), 4, 0));
  for (std::uint32_t round = 1; round <= 20; ++round) {
    const CUdeviceptr block = program::take(kBytes);
    kernels.spin(stream, 1000);
    OK(cuMemsetD32Async(block, round, kBytes / 4, stream));
    OK(cuMemcpyDtoHAsync(seen, block, 4, stream));
    OK(cuMemFree(block));
    EQUAL(*seen, round);
  }
  OK(cuMemFreeHost(seen));
}

// One thread's frees, waited for or not, and another's captures.
CASE(frees_beside_captures) {
  const CUcontext context = program::begin();
  Kernels kernels;
  std::atomic<bool> over{false};
  std::thread capturing([&] {
    OK(cuCtxSetCurrent(context));
    const CUstream stream = program::new_stream();
    const CUdeviceptr kept = program::take(kBytes);
    for (std::uint32_t round = 0; round < 300; ++round) {
      CUgraph graph = nullptr;
      OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
      kernels.fill(stream, kept, kBytes, round);
      OK(cuStreamEndCapture(stream, &graph));
      OK(cuGraphDestroy(graph));
    }
    over = true;
  });
  const CUstream stream = program::new_stream();
  for (std::uint32_t round = 0; !over; ++round) {
    const CUdeviceptr block = program::take(4096);
    kernels.fill(stream, block, 4096, round);
    kernels.check(stream, block, 4096, round);
    OK(cuMemFree(block));
  }
  capturing.join();
  EQUAL(kernels.wrong_bytes(), 0u);
}

CASE(lost_context) {
  program::begin();
  Kernels kernels;
  CUdeviceptr block = 0;
  OK(cuMemAlloc(&block, kBytes));
  OK(cuMemFree(block));
  OK(cuMemAlloc(&block, kBytes));
  kernels.fault(program::new_stream());
  EQUAL(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EQUAL(cuMemFree(block), CUDA_ERROR_ILLEGAL_ADDRESS);
  EQUAL(cuMemAlloc(&block, kBytes), CUDA_ERROR_ILLEGAL_ADDRESS);
}
