// What the tests of the simulator share: a card that is as new for each test, and short names for launching kernels.
// The simulated machine has two cards of 256 MiB (helpers.cpp says so before the first call).
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>

#include "tests/catch.h"
#include "tests/simcuda/simcuda.h"

#define CU(call) REQUIRE((call) == CUDA_SUCCESS)

namespace gpupool::sim {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kCardBytes = 256 * kMiB;

// Device 0 is current; at the end both cards are reset and no fault is left.
struct Session {
  Session();
  ~Session();
  CUcontext context = nullptr;
};

CUcontext second_card();  // its primary context, retained
uint64_t used_bytes();    // of the current card, by cuMemGetInfo
CUstream make_stream(unsigned flags = CU_STREAM_NON_BLOCKING);
CUevent make_event();
CUdeviceptr allocate(size_t bytes);

void fill(CUstream stream, CUdeviceptr to, uint64_t bytes, uint32_t seed);
void check(CUstream stream, CUdeviceptr at, uint64_t bytes, uint32_t seed, CUdeviceptr count);
void spin(CUstream stream, uint64_t ticks);
void wait_flag(CUstream stream, CUdeviceptr flag);
void set_flag(CUstream stream, CUdeviceptr flag);
void fault(CUstream stream);

// A counter of wrong bytes in pinned memory: readable at any time, and never part of a copy.
struct Counter {
  Counter();
  ~Counter();
  uint32_t value() const { return *static_cast<volatile uint32_t*>(cell); }
  CUdeviceptr address() const { return reinterpret_cast<CUdeviceptr>(cell); }
  uint32_t* cell = nullptr;
};

// One piece of VMM memory, mapped and open to its card.
struct Mapped {
  explicit Mapped(size_t bytes);
  ~Mapped();
  CUdeviceptr at = 0;
  size_t size;
  CUmemGenericAllocationHandle handle = 0;
};
CUmemAllocationProp device_memory(int device = 0);
CUresult open_to(int device, CUdeviceptr at, size_t bytes);

// Runs one hidden test case of this executable in a process of its own; what it wrote to stderr, and how it ended.
struct Ended {
  std::string output;
  int signal = 0;
  int status = 0;
};
Ended run_alone(const std::string& test_case, const std::string& environment = "");

}  // namespace gpupool::sim
