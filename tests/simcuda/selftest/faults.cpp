// Faults on demand, counters of calls, and the driver's age.
#include "tests/simcuda/selftest/helpers.h"

using namespace gpupool::sim;

TEST_CASE("the n-th call, a range, or all calls fail", "[faults]") {
  Session session;
  CUdeviceptr p = 0;
  REQUIRE(simcuda_set_faults("cuMemAlloc_v2:2=2;cuMemAlloc_v2:4-5=999;cuStreamCreate:*=801") == 0);
  CHECK(cuMemAlloc(&p, 16) == CUDA_SUCCESS);
  CHECK(cuMemAlloc(&p, 16) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cuMemAlloc(&p, 16) == CUDA_SUCCESS);
  CHECK(cuMemAlloc(&p, 16) == CUDA_ERROR_UNKNOWN);
  CHECK(cuMemAlloc(&p, 16) == CUDA_ERROR_UNKNOWN);
  CHECK(cuMemAlloc(&p, 16) == CUDA_SUCCESS);
  CUstream stream = nullptr;
  CHECK(cuStreamCreate(&stream, 0) == CUDA_ERROR_NOT_SUPPORTED);
  REQUIRE(simcuda_set_faults("") == 0);
  CHECK(cuStreamCreate(&stream, 0) == CUDA_SUCCESS);
}

TEST_CASE("a text of faults that cannot be read is refused", "[faults]") {
  for (const char* text : {"cuNoSuchCall:1=2", "cuMemAlloc_v2", "cuMemAlloc_v2:0=2",
                           "cuMemAlloc_v2:1=", "cuMemAlloc_v2:3-2=1", "cuInit:1=two"})
    CHECK(simcuda_set_faults(text) == -1);
}

TEST_CASE("an event that never completes", "[faults]") {
  Session session;
  const CUevent event = make_event();
  const CUstream stream = make_stream();
  REQUIRE(simcuda_set_faults("cuEventRecord:1=never") == 0);
  CU(cuEventRecord(event, stream));
  for (int i = 0; i < 100; ++i) CHECK(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  CU(cuStreamSynchronize(stream));
  CU(cuEventRecord(event, stream));
  CU(cuEventSynchronize(event));
}

TEST_CASE("calls are counted by symbol", "[faults]") {
  Session session;
  simcuda_reset_counts();
  CU(cuMemFree(allocate(16)));
  allocate(16);
  CHECK(simcuda_calls("cuMemAlloc_v2") == 2);
  CHECK(simcuda_calls("cuMemFree_v2") == 1);
  CHECK(simcuda_calls("cuMemAllocAsync") == 0);
  CHECK(simcuda_calls("no such symbol") == 0);
}
