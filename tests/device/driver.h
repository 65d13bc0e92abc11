// The driver under test: whatever libcuda.so.1 the loader finds. ctest puts the simulated one there; run by hand on a
// machine with a GPU, the same executable tests NVIDIA's. One per process, started at the first use; failing to start
// fails the test.
#pragma once

#include <cudaTypedefs.h>

#include <cstdint>
#include <string>

#include "device/driver_api.h"

namespace gpupool::test {

struct TestDriver {
  DriverApi api;
#define TEST_DRIVER(symbol, type) type symbol = nullptr;
#include "tests/device/driver.def"
#undef TEST_DRIVER
  int devices = 0;
  CUdevice device = 0;
  CUcontext context = nullptr;  // primary context of device 0, current to the thread that called driver() first
};

/// Initialised, with the primary context of device 0 current to the calling thread.
TestDriver& driver();

/// The driver's table with every function counting its calls and ready to refuse one; the state is one per process.
const DriverApi& instrumented();
/// Calls through instrumented() since the last reset; of one function, or of all.
std::uint64_t calls(const std::string& symbol);
std::uint64_t all_calls();
/// Forgets counts and orders.
void reset_instruments();
/// The `nth` call from now on (1 is the next) does not reach the driver and answers `code`.
void refuse(const std::string& symbol, std::uint64_t nth, CUresult code);

/// A stream that does not wait for the legacy default stream, in the current context.
CUstream make_stream();
/// Makes no context current for the thread while it lives.
class NoContext {
 public:
  NoContext();
  ~NoContext();
  NoContext(const NoContext&) = delete;
  NoContext& operator=(const NoContext&) = delete;

 private:
  CUcontext before_ = nullptr;
};

}  // namespace gpupool::test
