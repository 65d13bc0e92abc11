// Every driver call that gpupool makes fails: at once, in the middle, for ever.
#include "tests/preload/adverse/torture.h"

using namespace gpupool::tests;

namespace {

const char* const kDriverCalls[] = {
#define DRIVER(symbol, base, version, need) #symbol,
#include "device/driver_api.def"
#undef DRIVER
};

}  // namespace

TEST_CASE("a driver call that fails for ever costs the program no right byte") {
  for (const char* call : kDriverCalls) expect_right_bytes({{"GPUPOOL_SIM_FAULT", std::string(call) + ":*=999"}});
}

TEST_CASE("a driver call that fails once costs the program no right byte") {
  for (const char* call : kDriverCalls) {
    for (const char* which : {":1=2", ":7=801"}) expect_right_bytes({{"GPUPOOL_SIM_FAULT", std::string(call) + which}});
  }
}

TEST_CASE("the same with red zones") {
  for (const char* call : {"cuCtxRecordEvent", "cuCtxWaitEvent", "cuMemHostRegister_v2", "cuMemcpyHtoDAsync_v2",
                           "cuMemcpyDtoHAsync_v2", "cuMemsetD8Async", "cuStreamCreate", "cuEventRecord"}) {
    for (const char* which : {":*=999", ":7=801"})
      expect_right_bytes({{"GPUPOOL_POOL_GUARD", "on"}, {"GPUPOOL_SIM_FAULT", std::string(call) + which}});
  }
}

TEST_CASE("the same on slabs of cuMemAlloc, and on a driver without context events") {
  for (const char* call : {"cuMemAlloc_v2", "cuMemFree_v2", "cuMemGetInfo_v2", "cuEventRecord", "cuEventCreate"}) {
    expect_right_bytes({{"GPUPOOL_POOL_BACKING", "arena"}, {"GPUPOOL_SIM_FAULT", std::string(call) + ":2-9=2"}});
  }
  for (const char* call : {"cuCtxSynchronize", "cuEventRecord", "cuEventSynchronize", "cuEventQuery"}) {
    expect_right_bytes({{"GPUPOOL_SIM_DRIVER_VERSION", "12040"}, {"GPUPOOL_SIM_FAULT", std::string(call) + ":*=999"}});
  }
}
