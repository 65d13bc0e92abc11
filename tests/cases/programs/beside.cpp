// What must go on beside the pool: calls that need the card's memory, work that waits for later work, and captures of
// one thread while others allocate, grow and trim.
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "tests/preload/core/kernels.h"

namespace {

using program::Kernels;
using program::take;
using program::take_ordered;

constexpr std::size_t kMiB = std::size_t{1} << 20;

constexpr CUstreamCaptureMode kModes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                          CU_STREAM_CAPTURE_MODE_RELAXED};

// All the memory that the pool may hold, free again.
void fill_the_pool() {
  std::vector<CUdeviceptr> blocks;
  CUdeviceptr block = 0;
  while (cuMemAlloc(&block, 64 * kMiB) == CUDA_SUCCESS) blocks.push_back(block);
  for (const CUdeviceptr each : blocks) OK(cuMemFree(each));
  OK(cuCtxSynchronize());
}

std::size_t three_quarters_of_card() {
  std::size_t total = 0;
  OK(cuDeviceTotalMem(&total, 0));
  return total / 4 * 3;
}

}  // namespace

// Each takes three quarters of a card of which the pool holds nearly all.
CASE(yields_to_everybody) {
  program::begin();
  const std::size_t bytes = three_quarters_of_card();
  fill_the_pool();
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemGenericAllocationHandle handle = 0;
  OK(cuMemCreate(&handle, bytes, &prop, 0));
  OK(cuMemRelease(handle));

  fill_the_pool();
  CUDA_ARRAY3D_DESCRIPTOR description{};
  description.Width = 1024;
  description.Height = 1024;
  description.Depth = bytes / (std::size_t{1024} * 1024 * 4);
  description.Format = CU_AD_FORMAT_FLOAT;
  description.NumChannels = 1;
  CUarray array = nullptr;
  OK(cuArray3DCreate(&array, &description));
  OK(cuArrayDestroy(array));

  fill_the_pool();
  CUmemPoolProps shared{};
  shared.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  shared.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  shared.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemoryPool pool = nullptr;
  OK(cuMemPoolCreate(&pool, &shared));
  CUdeviceptr block = 0;
  const CUstream stream = program::new_stream();
  OK(cuMemAllocFromPoolAsync(&block, bytes, pool, stream));
  OK(cuMemFreeAsync(block, stream));
  OK(cuStreamSynchronize(stream));
  OK(cuMemPoolTrimTo(pool, 0));
  OK(cuMemPoolDestroy(pool));

  // And the pool again.
  OK(cuMemFree(take(bytes)));
}

// Work that waits for what is submitted later; between the two, memory is freed and taken.
CASE(waiting_work_goes_on) {
  const CUcontext context = program::begin();
  Kernels kernels;
  const CUstream waiting = program::new_stream();
  const CUstream other = program::new_stream();
  const CUdeviceptr flag = take(4);
  for (std::uint32_t round = 0; round < 6; ++round) {
    OK(cuMemsetD32(flag, 0, 1));
    const CUdeviceptr plain = take(kMiB);
    const CUdeviceptr ordered = take_ordered(kMiB, other);
    kernels.fill(other, plain, kMiB, 1);
    kernels.fill(other, ordered, kMiB, 1);
    OK(cuCtxSynchronize());
    OK(cuMemFree(plain));
    OK(cuMemFreeAsync(ordered, other));
    static std::atomic<bool> open;
    open = false;
    switch (round % 3) {
      case 0:
        OK(cuStreamWaitValue32(waiting, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
        break;
      case 1:
        kernels.wait_flag(waiting, flag);
        break;
      default:
        OK(cuLaunchHostFunc(
            waiting,
            [](void*) {
              while (!open) std::this_thread::yield();
            },
            nullptr));
    }
    const auto use_more = [&] {
      const CUstream own = program::new_stream();
      const CUdeviceptr first = take(kMiB);
      const CUdeviceptr second = take_ordered(kMiB, own);
      kernels.fill(own, first, kMiB, 50 + round);
      kernels.fill(own, second, kMiB, 50 + round);
      OK(cuStreamSynchronize(own));
      kernels.check(own, first, kMiB, 50 + round);
      kernels.check(own, second, kMiB, 50 + round);
      OK(cuMemFreeAsync(second, own));
      OK(cuMemFreeAsync(first, own));
      OK(cuStreamSynchronize(own));
      OK(cuStreamDestroy(own));
    };
    use_more();
    std::thread([&] {
      OK(cuCtxSetCurrent(context));
      use_more();
    }).join();
    open = true;
    kernels.set_flag(other, flag);
    OK(cuStreamSynchronize(waiting));
  }
  EQUAL(kernels.wrong_bytes(), 0u);
}

// One thread captures in each mode; another takes, frees, grows and trims meanwhile; the graph is what was captured.
CASE(capture_beside_others) {
  const CUcontext context = program::begin();
  Kernels kernels;
  CUmemoryPool pool = nullptr;
  OK(cuDeviceGetDefaultMemPool(&pool, 0));
  const CUdeviceptr kept = take(kMiB);
  for (std::uint32_t round = 0; round < 6; ++round) {
    const CUstreamCaptureMode mode = kModes[round % 3];
    const CUstream stream = program::new_stream();
    OK(cuStreamBeginCapture(stream, mode));
    kernels.fill(stream, kept, kMiB, round);
    // Native forbids others to allocate during a global capture; here it works, and must not harm the capture.
    std::thread([&] {
      OK(cuCtxSetCurrent(context));
      const CUstream own = program::new_stream();
      std::vector<CUdeviceptr> blocks;
      for (std::size_t size = kMiB; size <= 256 * kMiB; size *= 2) blocks.push_back(take_ordered(size, own));
      for (const CUdeviceptr block : blocks) OK(cuMemFreeAsync(block, own));
      const CUdeviceptr large = take_ordered(600 * kMiB, own);
      kernels.fill(own, large, kMiB, 99);
      OK(cuMemFreeAsync(large, own));
      OK(cuMemPoolTrimTo(pool, 0));
      OK(cuMemFreeAsync(take_ordered(kMiB, own), own));
    }).join();
    kernels.check(stream, kept, kMiB, round);
    CUgraph graph = nullptr;
    const auto end = [&] {
      OK(cuCtxSetCurrent(context));
      OK(cuStreamEndCapture(stream, &graph));
    };
    if (mode == CU_STREAM_CAPTURE_MODE_RELAXED)
      std::thread(end).join();
    else
      end();
    HOLDS(graph != nullptr);
    if (!graph) continue;
    CUgraphExec exec = nullptr;
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuStreamDestroy(stream));
  }
  EQUAL(kernels.wrong_bytes(), 0u);
}
