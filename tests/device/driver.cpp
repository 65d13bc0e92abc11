// See driver.h.
#include "tests/device/driver.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <map>
#include <stdexcept>

#include "device/context.h"

namespace gpupool::test {
namespace {

struct Instrument {
  std::uint64_t calls = 0;
  std::uint64_t refused_call = 0;  // 0: none
  CUresult code = CUDA_SUCCESS;
};

std::map<std::string, Instrument>& instruments() {
  static std::map<std::string, Instrument> all;
  return all;
}

/// One forwarder per row: `Row` keeps the rows of equal type apart.
template <typename Row, typename... Arguments>
auto forwarder(const char* symbol, CUresult (*real)(Arguments...)) -> CUresult (*)(Arguments...) {
  static CUresult (*kept)(Arguments...) = nullptr;
  static Instrument* instrument = nullptr;
  kept = real;
  instrument = &instruments()[symbol];
  if (!real) return nullptr;
  return [](Arguments... arguments) {
    ++instrument->calls;
    if (instrument->calls == instrument->refused_call) return instrument->code;
    return kept(arguments...);
  };
}

void must(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) throw std::runtime_error(std::string(what) + " answered " + std::to_string(result));
}

// A GPU has a few work queues for each context, and streams that share one wait for each other's held work. With the
// most that there are, streams that a test makes one after the other have a queue each.
void ask_for_queues() { setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0); }

TestDriver start() {
  TestDriver started;
  ask_for_queues();
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(dlerror());
  const char* missing = started.api.load([](void* from, const char* name) { return dlsym(from, name); }, library);
  if (missing) throw std::runtime_error(std::string("the driver lacks ") + missing);
#define TEST_DRIVER(symbol, type)                                   \
  started.symbol = reinterpret_cast<type>(dlsym(library, #symbol)); \
  if (!started.symbol) throw std::runtime_error("the driver lacks " #symbol);
#include "tests/device/driver.def"
#undef TEST_DRIVER
  must(started.cuInit(0), "cuInit");
  must(started.cuDeviceGetCount(&started.devices), "cuDeviceGetCount");
  must(started.api.cuDeviceGet(&started.device, 0), "cuDeviceGet");
  must(started.cuDevicePrimaryCtxRetain(&started.context, started.device), "cuDevicePrimaryCtxRetain");
  must(started.cuCtxSetCurrent(started.context), "cuCtxSetCurrent");
  return started;
}

}  // namespace

TestDriver& driver() {
  static TestDriver started = start();
  return started;
}

const DriverApi& instrumented() {
  static const DriverApi api = [] {
    DriverApi forwarding = driver().api;
#define DRIVER(symbol, base, version, need) \
  struct Row_##symbol;                      \
  forwarding.symbol = forwarder<Row_##symbol>(#symbol, forwarding.symbol);
#include "device/driver_api.def"
#undef DRIVER
    return forwarding;
  }();
  return api;
}

std::uint64_t calls(const std::string& symbol) { return instruments().at(symbol).calls; }

std::uint64_t all_calls() {
  std::uint64_t sum = 0;
  for (const auto& [symbol, instrument] : instruments()) sum += instrument.calls;
  return sum;
}

void reset_instruments() {
  for (auto& [symbol, instrument] : instruments()) instrument = {};
}

void refuse(const std::string& symbol, std::uint64_t nth, CUresult code) {
  Instrument& instrument = instruments().at(symbol);
  instrument.refused_call = instrument.calls + nth;
  instrument.code = code;
}

CUstream make_stream() {
  CUstream stream = nullptr;
  must(driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  return stream;
}

NoContext::NoContext() : before_(current_context(driver().api)) { driver().cuCtxSetCurrent(nullptr); }

NoContext::~NoContext() { driver().cuCtxSetCurrent(before_); }

}  // namespace gpupool::test
