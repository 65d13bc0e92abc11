// Captures: what they record, what they forbid in which mode, and what kills them.
#include <thread>

#include "tests/simcuda/selftest/helpers.h"

using namespace gpupool::sim;

namespace {

constexpr CUstreamCaptureMode kModes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                          CU_STREAM_CAPTURE_MODE_RELAXED};

CUstreamCaptureStatus status(CUstream stream) {
  CUstreamCaptureStatus now = CU_STREAM_CAPTURE_STATUS_NONE;
  CU(cuStreamIsCapturing(stream, &now));
  return now;
}

// One call while a stream captures: its result, and whether the capture lives on.
struct Outcome {
  CUresult result;
  bool alive;
};

template <class Call>
Outcome during_capture(CUstreamCaptureMode mode, Call call) {
  const CUstream stream = make_stream();
  CU(cuStreamBeginCapture(stream, mode));
  Outcome outcome{};
  outcome.result = call();
  outcome.alive = status(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  CUgraph graph = nullptr;
  const CUresult end = cuStreamEndCapture(stream, &graph);
  CHECK((end == CUDA_SUCCESS) == outcome.alive);
  CHECK((graph != nullptr) == outcome.alive);
  if (!outcome.alive) CHECK(end == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  if (graph) CU(cuGraphDestroy(graph));
  return outcome;
}

template <class Call>
void forbidden_in_every_mode(Call call) {
  for (const CUstreamCaptureMode mode : kModes) {
    const Outcome outcome = during_capture(mode, call);
    CHECK(outcome.result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(!outcome.alive);
  }
}

template <class Call>
void forbidden_unless_relaxed(Call call) {
  for (const CUstreamCaptureMode mode : kModes) {
    const bool relaxed = mode == CU_STREAM_CAPTURE_MODE_RELAXED;
    const Outcome outcome = during_capture(mode, call);
    CHECK(outcome.result == (relaxed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
    CHECK(outcome.alive == relaxed);
  }
}

template <class Call>
void always_allowed(Call call) {
  for (const CUstreamCaptureMode mode : kModes) {
    const Outcome outcome = during_capture(mode, call);
    CHECK(outcome.result == CUDA_SUCCESS);
    CHECK(outcome.alive);
  }
}

}  // namespace

TEST_CASE("a context record or wait kills the capture in every mode", "[captures]") {
  Session session;
  const CUevent event = make_event();
  forbidden_in_every_mode([&] { return cuCtxRecordEvent(session.context, event); });
  forbidden_in_every_mode([&] { return cuCtxWaitEvent(session.context, event); });
  // Even with the thread switched to relaxed.
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CU(cuThreadExchangeStreamCaptureMode(&mode));
  forbidden_in_every_mode([&] { return cuCtxRecordEvent(session.context, event); });
  CU(cuThreadExchangeStreamCaptureMode(&mode));
}

TEST_CASE("queries, plain allocations and frees are forbidden unless the capture is relaxed", "[captures]") {
  Session session;
  const CUevent event = make_event();
  CUdeviceptr p = allocate(512);
  forbidden_unless_relaxed([&] { return cuEventQuery(event); });
  forbidden_unless_relaxed([&] { return cuMemAlloc(&p, 512); });
  forbidden_unless_relaxed([&] { return cuMemFree(p); });
}

TEST_CASE("a thread switched to relaxed may allocate beside a capture of any mode", "[captures]") {
  Session session;
  CUdeviceptr p = 0;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CU(cuThreadExchangeStreamCaptureMode(&mode));
  always_allowed([&] { return cuMemAlloc(&p, 512); });
  CU(cuThreadExchangeStreamCaptureMode(&mode));
  CHECK(mode == CU_STREAM_CAPTURE_MODE_RELAXED);
}

TEST_CASE("a global capture forbids other threads too, a thread-local one does not", "[captures]") {
  Session session;
  for (const CUstreamCaptureMode mode : kModes) {
    const Outcome outcome = during_capture(mode, [&] {
      CUresult result = CUDA_SUCCESS;
      std::thread other([&] {
        CUdeviceptr p = 0;
        cuCtxSetCurrent(session.context);
        result = cuMemAlloc(&p, 512);
      });
      other.join();
      return result;
    });
    CHECK(outcome.alive == (mode != CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK((outcome.result == CUDA_SUCCESS) == outcome.alive);
  }
}

TEST_CASE("VMM calls and memory info leave a capture intact in every mode", "[captures]") {
  Session session;
  always_allowed([] {
    size_t free = 0;
    size_t total = 0;
    return cuMemGetInfo(&free, &total);
  });
  always_allowed([] {
    Mapped memory(2 * kMiB);
    return CUDA_SUCCESS;
  });
}

TEST_CASE("a capture queues nothing; its graph runs what was captured, as often as launched", "[captures]") {
  Session session;
  Counter wrong;
  const CUstream stream = make_stream();
  const CUdeviceptr p = allocate(4096);
  CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  fill(stream, p, 4096, 1);
  check(stream, p, 4096, 2, wrong.address());
  CUgraph graph = nullptr;
  CU(cuStreamEndCapture(stream, &graph));
  CHECK(simcuda_pending() == 0);
  CUgraphExec exec = nullptr;
  CU(cuGraphInstantiate(&exec, graph, 0));
  CU(cuGraphDestroy(graph));
  CU(cuGraphLaunch(exec, stream));
  CU(cuStreamSynchronize(stream));
  const uint32_t once = wrong.value();
  CHECK(once > 4000);
  CU(cuGraphLaunch(exec, stream));
  CU(cuStreamSynchronize(stream));
  CHECK(wrong.value() == 2 * once);
  CU(cuGraphExecDestroy(exec));
}

TEST_CASE("an event wait carries a capture into another stream, which must come back", "[captures]") {
  Session session;
  const CUstream origin = make_stream();
  const CUstream other = make_stream();
  const CUevent fork_event = make_event();
  const CUevent join_event = make_event();
  CUgraph graph = nullptr;
  CU(cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CU(cuEventRecord(fork_event, origin));
  CU(cuStreamWaitEvent(other, fork_event, 0));
  CHECK(status(other) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  spin(other, 1);
  SECTION("not joined") { CHECK(cuStreamEndCapture(origin, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED); }
  SECTION("joined") {
    CU(cuEventRecord(join_event, other));
    CU(cuStreamWaitEvent(origin, join_event, 0));
    CU(cuStreamEndCapture(origin, &graph));
    CU(cuGraphDestroy(graph));
  }
  SECTION("ended in the wrong stream") {
    CHECK(cuStreamEndCapture(other, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    CHECK(cuStreamEndCapture(origin, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  CHECK(status(other) == CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST_CASE("other ways to end or to die", "[captures]") {
  Session session;
  const CUstream stream = make_stream();
  const CUevent event = make_event();
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_ILLEGAL_STATE);
  CHECK(cuStreamBeginCapture(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  SECTION("another thread ends it") {
    std::thread other([&] {
      cuCtxSetCurrent(session.context);
      CHECK(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    });
    other.join();
    CU(cuStreamEndCapture(stream, &graph));
    CU(cuGraphDestroy(graph));
  }
  SECTION("it is synchronized") {
    CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  SECTION("its event is queried") {
    CU(cuEventRecord(event, stream));
    CHECK(cuEventQuery(event) == CUDA_ERROR_CAPTURED_EVENT);
    cuStreamEndCapture(stream, &graph);
  }
  SECTION("it waits for work outside") {
    const CUstream outside = make_stream();
    spin(outside, 1);
    CU(cuEventRecord(event, outside));
    CHECK(cuStreamWaitEvent(stream, event, 0) == CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    CHECK(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
}

TEST_CASE("work on the legacy stream collides with a capture of a blocking stream", "[captures]") {
  Session session;
  const CUdeviceptr p = allocate(512);
  for (const unsigned flags : {CU_STREAM_DEFAULT, CU_STREAM_NON_BLOCKING}) {
    const CUstream stream = make_stream(flags);
    CUgraph graph = nullptr;
    CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    const CUresult result = cuMemsetD8(p, 1, 512);
    CHECK(result == (flags == CU_STREAM_DEFAULT ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS));
    cuStreamEndCapture(stream, &graph);
    CHECK((graph != nullptr) == (flags == CU_STREAM_NON_BLOCKING));
    if (graph) CU(cuGraphDestroy(graph));
  }
}

TEST_CASE("stream-ordered memory inside a capture belongs to the graph", "[captures]") {
  Session session;
  Counter wrong;
  const CUstream stream = make_stream();
  CUdeviceptr p = 0;
  CUgraph graph = nullptr;
  CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CU(cuMemAllocAsync(&p, 4 * kMiB, stream));
  fill(stream, p, 4096, 1);
  check(stream, p, 4096, 1, wrong.address());
  CU(cuMemFreeAsync(p, stream));
  CU(cuStreamEndCapture(stream, &graph));
  CHECK(used_bytes() == 4 * kMiB);
  CUgraphExec exec = nullptr;
  CU(cuGraphInstantiate(&exec, graph, 0));
  CU(cuGraphDestroy(graph));
  CU(cuGraphLaunch(exec, stream));
  CU(cuStreamSynchronize(stream));
  CHECK(wrong.value() == 0);
  CU(cuGraphExecDestroy(exec));
  CHECK(used_bytes() == 0);
}

TEST_CASE("memory nodes that a program adds itself are those of a capture", "[captures]") {
  Session session;
  CUgraph graph = nullptr;
  CUgraphNode allocates = nullptr;
  CUgraphNode frees = nullptr;
  CUgraphExec exec = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  params.bytesize = 4 * kMiB;
  CU(cuGraphCreate(&graph, 0));
  CU(cuGraphAddMemAllocNode(&allocates, graph, nullptr, 0, &params));
  CHECK(used_bytes() == 4 * kMiB);
  CU(cuGraphAddMemFreeNode(&frees, graph, &allocates, 1, params.dptr));
  CHECK(cuGraphAddMemFreeNode(&frees, graph, &allocates, 1, params.dptr) == CUDA_ERROR_INVALID_VALUE);
  CU(cuGraphInstantiate(&exec, graph, 0));
  CU(cuGraphLaunch(exec, make_stream()));
  CU(cuCtxSynchronize());
  CU(cuGraphExecDestroy(exec));
  CU(cuGraphDestroy(graph));
  CHECK(used_bytes() == 0);
  params.bytesize = 0;
  CU(cuGraphCreate(&graph, 0));
  CHECK(cuGraphAddMemAllocNode(&allocates, graph, nullptr, 0, &params) == CUDA_ERROR_INVALID_VALUE);
  CU(cuGraphDestroy(graph));
}
