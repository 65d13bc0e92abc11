// Events of streams, contexts and green contexts.
#include "tests/simcuda/selftest/helpers.h"

using namespace gpupool::sim;

TEST_CASE("an event that was never recorded is complete", "[events]") {
  Session session;
  const CUevent event = make_event();
  CHECK(cuEventQuery(event) == CUDA_SUCCESS);
  CHECK(cuEventSynchronize(event) == CUDA_SUCCESS);
}

TEST_CASE("queries are answered late, but not for ever", "[events]") {
  Session session;
  const CUstream stream = make_stream();
  const CUevent event = make_event();
  spin(stream, 200);
  CU(cuEventRecord(event, stream));
  CHECK(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  CHECK(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  CHECK(simcuda_pending() == 2);
  int polls = 0;
  while (cuEventQuery(event) == CUDA_ERROR_NOT_READY) REQUIRE(++polls < 100);
}

TEST_CASE("a later record does not change an earlier wait", "[events]") {
  Session session;
  const CUdeviceptr flag = allocate(4);
  CU(cuMemsetD32(flag, 0, 1));
  CU(cuCtxSynchronize());
  const CUstream a = make_stream();
  const CUstream b = make_stream();
  const CUevent event = make_event();
  CU(cuEventRecord(event, a));
  CU(cuStreamWaitEvent(b, event, 0));
  wait_flag(a, flag);
  CU(cuEventRecord(event, a));
  CU(cuStreamSynchronize(b));
  CHECK(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  set_flag(b, flag);
  CU(cuEventSynchronize(event));
}

TEST_CASE("a context's record covers every stream, also destroyed ones, and its wait holds every later stream back",
          "[events]") {
  Session session;
  const CUevent event = make_event();
  const CUstream gone = make_stream();
  spin(gone, 10);
  CU(cuStreamDestroy(gone));
  spin(make_stream(), 10);
  CU(cuCtxRecordEvent(session.context, event));
  CU(cuCtxWaitEvent(session.context, event));
  const CUstream later = make_stream();
  spin(later, 1);
  CU(cuStreamSynchronize(later));
  CHECK(simcuda_pending() == 0);
}

TEST_CASE("a context waits for another card's event", "[events]") {
  Session session;
  const CUevent event = make_event();
  const CUstream here = make_stream();
  spin(here, 10);
  CU(cuCtxRecordEvent(session.context, event));
  const CUcontext second = second_card();
  CU(cuCtxWaitEvent(second, event));
  CHECK(cuCtxRecordEvent(second, event) == CUDA_ERROR_INVALID_HANDLE);
  CU(cuCtxSetCurrent(second));
  spin(make_stream(), 1);
  CU(cuCtxSynchronize());
  CHECK(simcuda_pending() == 0);
}

TEST_CASE("green contexts fold into their primary, and not into each other", "[events]") {
  Session session;
  CUdevResource resource{};
  CUdevResourceDesc description = nullptr;
  CU(cuDeviceGetDevResource(0, &resource, CU_DEV_RESOURCE_TYPE_SM));
  CU(cuDevResourceGenerateDesc(&description, &resource, 1));
  CUgreenCtx green[2];
  CUstream stream[2];
  for (int i = 0; i < 2; ++i) {
    CU(cuGreenCtxCreate(&green[i], description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    CU(cuGreenCtxStreamCreate(&stream[i], green[i], CU_STREAM_NON_BLOCKING, 0));
    spin(stream[i], 10);
  }
  const CUevent event = make_event();
  CU(cuGreenCtxRecordEvent(green[0], event));
  CU(cuEventSynchronize(event));
  CHECK(simcuda_pending() == 1);
  CU(cuCtxRecordEvent(session.context, event));
  CU(cuEventSynchronize(event));
  CHECK(simcuda_pending() == 0);
}

TEST_CASE("virtual time is measured between events", "[events]") {
  Session session;
  CUevent start = nullptr;
  CUevent end = nullptr;
  CU(cuEventCreate(&start, CU_EVENT_DEFAULT));
  CU(cuEventCreate(&end, CU_EVENT_DEFAULT));
  const CUstream stream = make_stream();
  CU(cuEventRecord(start, stream));
  spin(stream, 5000);
  CU(cuEventRecord(end, stream));
  float milliseconds = 0;
  CHECK(cuEventElapsedTime(&milliseconds, start, end) == CUDA_ERROR_NOT_READY);
  CU(cuEventSynchronize(end));
  CU(cuEventElapsedTime(&milliseconds, start, end));
  CHECK(milliseconds >= 5.0f);
  CHECK(milliseconds < 5.1f);
}
