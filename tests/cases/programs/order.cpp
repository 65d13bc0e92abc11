// Captures, and memory that is handed on while work is in flight: the data tells.
#include <atomic>
#include <cstdint>
#include <cstdlib>
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

// What cuGetProcAddress gives a program whose stream 0 is the thread's own.
template <class Function>
Function per_thread(const char* name, int version) {
  void* found = nullptr;
  OK(cuGetProcAddress(name, &found, version, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, nullptr));
  return reinterpret_cast<Function>(found);
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

// However a capture was begun, frees and requests of plain memory leave it alive.
CASE(capture_begun_otherwise) {
  program::begin();
  Kernels kernels;
  const CUstream stream = program::new_stream();
  const CUstream busy = program::new_stream();
  const auto begin = per_thread<decltype(&cuStreamBeginCapture)>("cuStreamBeginCapture", 10010);
  const auto begin_to = per_thread<decltype(&cuStreamBeginCaptureToGraph)>("cuStreamBeginCaptureToGraph", 12030);
  const auto end = per_thread<decltype(&cuStreamEndCapture)>("cuStreamEndCapture", 10000);
  constexpr CUstreamCaptureMode kMode = CU_STREAM_CAPTURE_MODE_RELAXED;
  for (int way = 0; way < 4; ++way) {
    const CUdeviceptr block = program::take(kMiB);
    const CUdeviceptr freed_after = program::take(kMiB);
    kernels.spin(busy, 1000);
    kernels.fill(busy, block, kMiB, 1);
    CUgraph graph = nullptr;
    if (way == 0 || way == 1) OK(cuGraphCreate(&graph, 0));
    if (way == 0) OK(cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0, kMode));
    if (way == 1) OK(begin_to(stream, graph, nullptr, nullptr, 0, kMode));
    if (way == 2) OK(begin(stream, kMode));
    if (way == 3) OK(cuStreamBeginCapture(stream, kMode));
    OK(cuMemFree(block));
    const CUdeviceptr next = program::take(kMiB);
    kernels.fill(stream, next, kMiB, 2);
    kernels.check(stream, next, kMiB, 2);
    OK(way % 2 == 0 ? end(stream, &graph) : cuStreamEndCapture(stream, &graph));
    HOLDS(graph != nullptr);
    OK(cuMemFree(freed_after));  // recorded again, now that none is open
    if (graph) launch(graph, stream);
    OK(cuMemFree(next));
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
  OK(cuGraphDestroy(graph));
  for (CUdeviceptr block : blocks) kernels.fill(stream, block, kMiB, 2);
  for (CUdeviceptr block : blocks) kernels.check(stream, block, kMiB, 2);
  EQUAL(kernels.wrong_bytes(), 0u);
  for (CUdeviceptr block : blocks) OK(cuMemFree(block));
}

// What needs the card's memory gets none that a kernel still uses, freed or not.
CASE(yield_under_a_kernel) {
  program::begin();
  Kernels kernels;
  const CUstream busy = program::new_stream();
  constexpr std::uint64_t kMost = 3 * 1024 * kMiB;  // of 4 GiB
  const CUdeviceptr block = program::take(kMost);
  kernels.spin(busy, 1000);
  kernels.fill(busy, block, kMost, 1);
  OK(cuMemFree(block));
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemGenericAllocationHandle handle = 0;
  OK(cuMemCreate(&handle, 2 * 1024 * kMiB, &prop, 0));
  OK(cuStreamSynchronize(busy));
  OK(cuMemRelease(handle));
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
    const auto content = static_cast<unsigned char>(100 + round);
    OK(cuMemsetD8Async(q, content, kMiB, b));
    OK(cuStreamSynchronize(b));
    OK(cuStreamSynchronize(a));
    std::vector<unsigned char> seen(kMiB);
    OK(cuMemcpyDtoH(seen.data(), q, kMiB));
    std::uint64_t wrong = 0;
    for (unsigned char byte : seen) wrong += byte != content;
    EQUAL(wrong, 0u);
    OK(cuMemFree(q));
  }
}

// Two threads whose "stream 0" is each one's own, by the handle of that stream or as programs compiled for it call it.
CASE(streams_of_threads) {
  const CUcontext context = program::begin();
  Kernels kernels;
  const bool by_handle = std::getenv("TEST_BY_HANDLE") != nullptr;
  const auto alloc = by_handle ? &cuMemAllocAsync : per_thread<decltype(&cuMemAllocAsync)>("cuMemAllocAsync", 11020);
  const auto free = by_handle ? &cuMemFreeAsync : per_thread<decltype(&cuMemFreeAsync)>("cuMemFreeAsync", 11020);
  const CUstream zero = by_handle ? CU_STREAM_PER_THREAD : nullptr;
  for (std::uint32_t round = 0; round < 10; ++round) {
    std::thread([&] {
      OK(cuCtxSetCurrent(context));
      CUdeviceptr p = 0;
      OK(cuMemAlloc(&p, kMiB));
      kernels.spin(CU_STREAM_PER_THREAD, 1000);
      kernels.fill(CU_STREAM_PER_THREAD, p, kMiB, round);
      OK(cuMemFree(p));
      CUdeviceptr ordered = 0;
      OK(alloc(&ordered, kMiB, zero));
      kernels.fill(CU_STREAM_PER_THREAD, ordered, kMiB, round);
      OK(free(ordered, zero));
    }).join();
    std::thread([&] {
      OK(cuCtxSetCurrent(context));
      CUdeviceptr q = 0;
      CUdeviceptr ordered = 0;
      OK(alloc(&ordered, kMiB, zero));
      kernels.fill(CU_STREAM_PER_THREAD, ordered, kMiB, 100 + round);  // before a plain request orders everything
      OK(cuMemAlloc(&q, kMiB));
      kernels.fill(CU_STREAM_PER_THREAD, q, kMiB, 100 + round);
      kernels.spin(CU_STREAM_PER_THREAD, 3000);
      for (CUdeviceptr block : {q, ordered}) kernels.check(CU_STREAM_PER_THREAD, block, kMiB, 100 + round);
      OK(free(ordered, zero));
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
