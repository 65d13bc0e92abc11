// What the fence contract needs of the fence under test beside the interface: streams with work that the test can hold
// up. CudaRig runs it on the driver under test, MemoryRig on the memory fence's books.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "device/cuda_fence.h"
#include "pool/memory_fence.h"
#include "tests/catch.h"
#include "tests/device/driver.h"

namespace gpupool::test {

/// Work on CUDA streams of the current context. A held stream waits for a word of pinned host memory, which the host
/// sets: nothing on the device side, so that not even a wait of the whole context can keep it from being released.
class HeldWork {
 public:
  HeldWork() {
    void* memory = nullptr;
    REQUIRE(driver().cuMemHostAlloc(&memory, kWords * sizeof(cuuint32_t), 0x3) == CUDA_SUCCESS);  // portable, mapped
    words_ = static_cast<cuuint32_t*>(memory);
    std::fill_n(words_, kWords, 0u);
    REQUIRE(driver().api.cuMemAlloc_v2(&scratch_, 512) == CUDA_SUCCESS);
    submit(nullptr);  // the first of its kind may load code, which waits for the context: not while anything is held
    REQUIRE(driver().api.cuCtxSynchronize() == CUDA_SUCCESS);
  }
  /// Everything is released and finished, and the streams made here are gone, so that no test leaves work or a queue in
  /// use to the next. Memory stays: it is little.
  ~HeldWork() {
    while (!held_.empty()) release(held_.begin()->first);
    driver().api.cuCtxSynchronize();
    for (CUstream stream : streams_) driver().cuStreamDestroy_v2(stream);
  }
  HeldWork(const HeldWork&) = delete;
  HeldWork& operator=(const HeldWork&) = delete;

  CUstream make_stream() { return streams_.emplace_back(test::make_stream()); }
  void hold(CUstream stream) {
    REQUIRE(used_ < kWords);
    cuuint32_t* word = words_ + used_++;
    held_[stream] = word;
    const auto address = reinterpret_cast<CUdeviceptr>(word);
    REQUIRE(driver().cuStreamWaitValue32_v2(stream, address, 1, CU_STREAM_WAIT_VALUE_EQ) == CUDA_SUCCESS);
    submit(stream);
  }
  void release(CUstream stream) {
    std::atomic_ref<cuuint32_t>(*held_.at(stream)).store(1, std::memory_order_release);
    held_.erase(stream);
  }
  void submit(CUstream stream) { REQUIRE(driver().cuMemsetD32Async(scratch_, 1, 1, stream) == CUDA_SUCCESS); }
  /// Long enough to call it a hang; a stream that may run finishes in microseconds.
  bool finishes(CUstream stream) { return poll(stream, 3000) == CUDA_SUCCESS; }
  bool stays_pending(CUstream stream) { return poll(stream, 30) == CUDA_ERROR_NOT_READY; }

 private:
  static constexpr std::size_t kWords = 64;

  CUresult poll(CUstream stream, int times) {
    CUresult result = driver().cuStreamQuery(stream);
    for (; result == CUDA_ERROR_NOT_READY && times > 0; --times) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      result = driver().cuStreamQuery(stream);
    }
    return result;
  }

  cuuint32_t* words_ = nullptr;
  std::size_t used_ = 0;
  CUdeviceptr scratch_ = 0;
  std::map<CUstream, cuuint32_t*> held_;
  std::vector<CUstream> streams_;
};

inline StreamRef ref(CUstream stream) { return reinterpret_cast<StreamRef>(stream); }

class CudaRig {
 public:
  explicit CudaRig(const DriverApi& api = driver().api) : fence_(api, captures_, driver().context) {}
  ~CudaRig() {
    if (capturing_) end_capture();
  }

  CudaFence& fence() { return fence_; }
  Captures& captures() { return captures_; }
  HeldWork& work() { return work_; }

  StreamRef make_stream() { return ref(work_.make_stream()); }
  void hold(StreamRef stream) { work_.hold(handle(stream)); }
  void release(StreamRef stream) { work_.release(handle(stream)); }
  void submit(StreamRef stream) { work_.submit(handle(stream)); }
  bool finishes(StreamRef stream) { return work_.finishes(handle(stream)); }
  bool stays_pending(StreamRef stream) { return work_.stays_pending(handle(stream)); }

  void begin_capture(StreamRef stream) {
    capturing_ = handle(stream);
    REQUIRE(driver().cuStreamBeginCapture_v2(capturing_, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
    captures_.began(Captures::origin_of(driver().api, capturing_));
  }
  /// False: something has killed the capture.
  bool end_capture() {
    CUgraph graph = nullptr;
    const CUresult result = driver().cuStreamEndCapture(capturing_, &graph);
    if (graph) driver().cuGraphDestroy(graph);
    captures_.ended(Captures::origin_of(driver().api, capturing_));
    capturing_ = nullptr;
    return result == CUDA_SUCCESS;
  }

 private:
  static CUstream handle(StreamRef stream) { return reinterpret_cast<CUstream>(stream); }

  Captures captures_;
  CudaFence fence_;
  HeldWork work_;
  CUstream capturing_ = nullptr;
};

class MemoryRig {
 public:
  explicit MemoryRig(const MemoryFence::Options& options = {.host_wait_helps = false}) : fence_(options) {}

  MemoryFence& fence() { return fence_; }

  StreamRef make_stream() { return next_stream_++; }
  void hold(StreamRef stream) { held_[stream] = fence_.submit(stream); }
  void release(StreamRef stream) { held_.erase(stream); }
  void submit(StreamRef stream) { fence_.submit(stream); }
  bool finishes(StreamRef stream) {
    for (StreamRef each = 1; each < next_stream_; ++each) {
      if (!blocked(each)) fence_.complete(fence_.point_of(each));
    }
    return !blocked(stream);
  }
  bool stays_pending(StreamRef stream) { return !finishes(stream); }

  void begin_capture(StreamRef stream) { fence_.begin_capture(stream); }
  bool end_capture() {
    fence_.end_captures();
    return true;
  }

 private:
  bool blocked(StreamRef stream) const {
    const auto behind = [&](const auto& held) { return fence_.ordered_behind(stream, held.second); };
    return std::any_of(held_.begin(), held_.end(), behind);
  }

  MemoryFence fence_;
  StreamRef next_stream_ = 1;
  std::map<StreamRef, MemoryFence::Point> held_;
};

}  // namespace gpupool::test
