// Memory is short, and what would do was freed but is still in use: a request waits where natively the free had waited,
// whoever made it, and never for work that waits for the requester.
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "tests/preload/core/kernels.h"

namespace {

using program::Kernels;
using program::take;

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::size_t most_of_the_free() { return program::free_memory() / 4 * 3; }

// Holds up a stream until it is let go.
class Gate {
 public:
  explicit Gate(Kernels& kernels) : kernels_(kernels), opener_(program::new_stream()) {
    OK(cuMemAlloc(&flag_, 4));
    OK(cuMemsetD32(flag_, 0, 1));
    OK(cuCtxSynchronize());
    OK(cuCtxGetCurrent(&context_));
  }
  ~Gate() {
    if (later_.joinable()) later_.join();
  }
  void shut(CUstream stream) { kernels_.wait_flag(stream, flag_); }
  void open() { kernels_.set_flag(opener_, flag_); }
  // After more than any wait that has an end of its own.
  void open_later() {
    later_ = std::thread([this] {
      OK(cuCtxSetCurrent(context_));
      std::this_thread::sleep_for(std::chrono::milliseconds(1500));
      open();
    });
  }

 private:
  Kernels& kernels_;
  CUstream opener_;
  CUdeviceptr flag_ = 0;
  CUcontext context_ = nullptr;
  std::thread later_;
};

// Memory that work of a stream uses for a while.
struct BlockInUse {
  BlockInUse(Kernels& kernels, std::size_t bytes, CUstream stream) : block(take(bytes)), gate(kernels) {
    gate.shut(stream);
    gate.open_later();
    OK(cuMemsetD8Async(block, 1, kMiB, stream));
  }
  const CUdeviceptr block;
  Gate gate;
};

}  // namespace

// One thread frees, another then takes: natively the first one has waited.
CASE(handed_on) {
  const CUcontext context = program::begin();
  Kernels kernels;
  const CUstream stream = program::new_stream();
  const std::size_t bytes = most_of_the_free();
  for (const bool ordered : {false, true}) {
    const BlockInUse used(kernels, bytes, stream);
    std::thread([&] {
      OK(cuCtxSetCurrent(context));
      OK(cuMemFree(used.block));
    }).join();
    CUdeviceptr next = 0;
    OK(ordered ? cuMemAllocAsync(&next, bytes, program::new_stream()) : cuMemAlloc(&next, bytes));
    OK(cuCtxSynchronize());
    if (next) OK(cuMemFree(next));
  }
}

// The same thread, and then what the driver serves: another context, and memory beside the pool.
CASE(freed_for_the_driver) {
  program::begin();
  Kernels kernels;
  const CUstream stream = program::new_stream();
  const std::size_t bytes = most_of_the_free();
  const BlockInUse used(kernels, bytes, stream);
  OK(cuMemFree(used.block));
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemGenericAllocationHandle handle = 0;
  OK(cuMemCreate(&handle, bytes / (64 * kMiB) * 64 * kMiB, &prop, 0));
  OK(cuCtxSynchronize());
  if (handle) OK(cuMemRelease(handle));
}

CASE(freed_for_another_context) {
  program::begin();
  Kernels kernels;
  const CUstream stream = program::new_stream();
  const std::size_t bytes = most_of_the_free();
  const BlockInUse used(kernels, bytes, stream);
  OK(cuMemFree(used.block));
  const CUcontext other = program::new_context();
  const CUdeviceptr next = take(bytes);
  OK(cuMemFree(next));
  OK(cuCtxDestroy(other));
}

// Freed in a relaxed capture, while work on it goes on: natively the free waits, and the memory can be had at once.
CASE(freed_and_taken_in_a_capture) {
  program::begin();
  Kernels kernels;
  const CUstream stream = program::new_stream();
  const CUstream other = program::new_stream();
  const std::size_t bytes = most_of_the_free();
  const CUdeviceptr block = take(bytes);
  kernels.spin(other, 1000);
  kernels.fill(other, block, kMiB, 1);
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(cuMemFree(block));
  const CUdeviceptr next = take(bytes);
  kernels.fill(other, next, kMiB, 2);
  kernels.check(other, next, kMiB, 2);
  CUgraph graph = nullptr;
  OK(cuStreamEndCapture(stream, &graph));
  OK(cuGraphDestroy(graph));
  EQUAL(kernels.wrong_bytes(), 0u);
}

// The same, and then work is submitted that waits for what comes after.
CASE(freed_in_a_capture) {
  program::begin();
  Kernels kernels;
  const CUstream stream = program::new_stream();
  const CUstream persistent = program::new_stream();
  const std::size_t bytes = most_of_the_free();
  const CUdeviceptr block = take(bytes);
  Gate gate(kernels);
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(cuMemFree(block));
  gate.shut(persistent);
  CUgraph graph = nullptr;
  OK(cuStreamEndCapture(stream, &graph));
  OK(cuGraphDestroy(graph));
  const CUdeviceptr next = take(bytes);
  gate.open();
  OK(cuCtxSynchronize());
  OK(cuMemFree(next));
}

namespace {

// One stream has used the pool, in blocks of that size, and its later work goes on; then a second one asks.
void take_what_the_first_freed(std::size_t block_bytes) {
  program::begin();
  Kernels kernels;
  const CUstream first = program::new_stream();
  const std::size_t bytes = most_of_the_free();
  std::vector<CUdeviceptr> blocks(bytes / block_bytes);
  for (CUdeviceptr& block : blocks) block = program::take_ordered(block_bytes, first);
  for (const CUdeviceptr block : blocks) OK(cuMemFreeAsync(block, first));
  Gate gate(kernels);
  gate.shut(first);
  gate.open_later();
  CUdeviceptr next = 0;
  OK(cuMemAllocAsync(&next, bytes, program::new_stream()));
  OK(cuCtxSynchronize());
}

}  // namespace

CASE(second_stream) {
  program::begin();
  take_what_the_first_freed(most_of_the_free());
}

CASE(second_stream_after_small_blocks) { take_what_the_first_freed(2 * kMiB); }
