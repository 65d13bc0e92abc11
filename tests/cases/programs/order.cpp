// Captures, and memory that is handed on while work is in flight: the data tells.
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "tests/preload/core/kernels.h"

namespace {

using program::Kernels;

constexpr std::uint64_t kMiB = 1 << 20;

constexpr CUstreamCaptureMode kModes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                          CU_STREAM_CAPTURE_MODE_RELAXED};

void launch(CUgraph graph, CUstream stream) {
  CUgraphExec exec = nullptr;
  OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
}

}  // namespace

// An allocation inside a capture either works and leaves the capture alive, or says that it is not allowed.
CASE(capture_modes) {
  program::begin();
  Kernels kernels;
  const CUstream stream = program::new_stream();
  for (CUstreamCaptureMode mode : kModes) {
    for (std::uint64_t bytes : {kMiB, 600 * kMiB}) {  // from the pool; by growth
      OK(cuStreamBeginCapture(stream, mode));
      CUdeviceptr block = 0;
      const CUresult allocated = cuMemAlloc(&block, bytes);
      CUgraph graph = nullptr;
      if (allocated != CUDA_SUCCESS) {
        EQUAL(allocated, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        cuStreamEndCapture(stream, &graph);
        continue;
      }
      kernels.fill(stream, block, kMiB, 5);
      kernels.check(stream, block, kMiB, 5);
      OK(cuStreamEndCapture(stream, &graph));
      HOLDS(graph != nullptr);
      if (graph) launch(graph, stream);
      OK(cuMemFree(block));
    }
  }
  EQUAL(kernels.wrong_bytes(), 0u);
}

// Memory runs out while a capture is open and a just freed block is still in use: nothing under either may go.
CASE(capture_short_of_memory) {
  program::begin();
  Kernels kernels;
  const CUstream stream = program::new_stream();
  const CUstream busy = program::new_stream();
  CUdeviceptr written = 0;
  OK(cuMemAlloc(&written, 64 * kMiB));
  kernels.spin(busy, 5000);
  kernels.fill(busy, written, kMiB, 1);
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(cuMemFree(written));
  std::vector<CUdeviceptr> blocks;
  CUresult result = CUDA_SUCCESS;
  while (result == CUDA_SUCCESS && blocks.size() < 1000) {
    CUdeviceptr block = 0;
    result = cuMemAlloc(&block, 64 * kMiB);
    if (result == CUDA_SUCCESS) blocks.push_back(block);
  }
  EQUAL(result, CUDA_ERROR_OUT_OF_MEMORY);
  CUgraph graph = nullptr;
  OK(cuStreamEndCapture(stream, &graph));
  for (CUdeviceptr block : blocks) kernels.fill(stream, block, kMiB, 2);
  for (CUdeviceptr block : blocks) kernels.check(stream, block, kMiB, 2);
  EQUAL(kernels.wrong_bytes(), 0u);
  for (CUdeviceptr block : blocks) OK(cuMemFree(block));
}

CASE(free_under_a_kernel) {
  program::begin();
  Kernels kernels;
  const CUstream a = program::new_stream();
  const CUstream b = program::new_stream();
  for (unsigned char round = 0; round < 10; ++round) {
    CUdeviceptr p = 0;
    OK(cuMemAlloc(&p, kMiB));
    kernels.spin(a, 1000);
    kernels.fill(a, p, kMiB, round);
    OK(cuMemFree(p));
    CUdeviceptr q = 0;
    OK(cuMemAlloc(&q, kMiB));
    OK(cuMemsetD8Async(q, round, kMiB, b));
    OK(cuStreamSynchronize(a));
    OK(cuStreamSynchronize(b));
    std::vector<unsigned char> seen(kMiB);
    OK(cuMemcpyDtoH(seen.data(), q, kMiB));
    std::uint64_t wrong = 0;
    for (unsigned char byte : seen) wrong += byte != round;
    EQUAL(wrong, 0u);
    OK(cuMemFree(q));
  }
}

// Two threads whose "stream 0" is each one's own.
CASE(streams_of_threads) {
  const CUcontext context = program::begin();
  Kernels kernels;
  for (std::uint32_t round = 0; round < 10; ++round) {
    std::thread([&] {
      OK(cuCtxSetCurrent(context));
      CUdeviceptr p = 0;
      OK(cuMemAlloc(&p, kMiB));
      kernels.spin(CU_STREAM_PER_THREAD, 1000);
      kernels.fill(CU_STREAM_PER_THREAD, p, kMiB, round);
      OK(cuMemFree(p));
      CUdeviceptr ordered = 0;
      OK(cuMemAllocAsync(&ordered, kMiB, CU_STREAM_PER_THREAD));
      kernels.fill(CU_STREAM_PER_THREAD, ordered, kMiB, round);
      OK(cuMemFreeAsync(ordered, CU_STREAM_PER_THREAD));
    }).join();
    std::thread([&] {
      OK(cuCtxSetCurrent(context));
      CUdeviceptr q = 0;
      CUdeviceptr ordered = 0;
      OK(cuMemAlloc(&q, kMiB));
      OK(cuMemAllocAsync(&ordered, kMiB, CU_STREAM_PER_THREAD));
      for (CUdeviceptr block : {q, ordered}) kernels.fill(CU_STREAM_PER_THREAD, block, kMiB, 100 + round);
      kernels.spin(CU_STREAM_PER_THREAD, 3000);
      for (CUdeviceptr block : {q, ordered}) kernels.check(CU_STREAM_PER_THREAD, block, kMiB, 100 + round);
      OK(cuMemFreeAsync(ordered, CU_STREAM_PER_THREAD));
      OK(cuMemFree(q));
    }).join();
  }
  EQUAL(kernels.wrong_bytes(), 0u);
}

// Another thread, which has asked for nothing yet, takes memory while a stream that waits for the legacy one is
// captured.
CASE(capture_on_a_blocking_stream) {
  const CUcontext context = program::begin();
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  OK(cuMemFree(program::take(4096)));
  for (int round = 0; round < 3; ++round) {
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    std::thread([&] {
      OK(cuCtxSetCurrent(context));
      OK(cuMemFree(program::take(4096)));
      const CUstream own = program::new_stream();
      OK(cuMemFreeAsync(program::take_ordered(4096, own), own));
      OK(cuStreamDestroy(own));
    }).join();
    CUgraph graph = nullptr;
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphDestroy(graph));
  }
}
