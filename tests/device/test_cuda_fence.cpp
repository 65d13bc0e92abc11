// What only the CUDA fence can get wrong: its cost, several contexts, default streams, errors, drivers without context
// events.
#include "device/cuda_fence.h"

#include <functional>

#include "device/context.h"
#include "tests/device/fence_rigs.h"

namespace gpupool::test {
namespace {

/// A second context on the device, with work in it that can be held. Not current. Making and destroying one may wait
/// for the device: not while other work is held.
class SecondContext {
 public:
  SecondContext() {
    REQUIRE(driver().cuCtxCreate_v2(&context_, 0, driver().device) == CUDA_SUCCESS);
    work_ = std::make_unique<HeldWork>();
    stream_ = work_->make_stream();
    CUcontext popped = nullptr;
    REQUIRE(driver().api.cuCtxPopCurrent_v2(&popped) == CUDA_SUCCESS);
  }
  ~SecondContext() {
    {
      const ContextGuard current(driver().api, context_);
      work_.reset();
    }
    driver().cuCtxDestroy_v2(context_);
  }
  SecondContext(const SecondContext&) = delete;
  SecondContext& operator=(const SecondContext&) = delete;

  CUcontext context() const { return context_; }
  CUstream stream() const { return stream_; }
  HeldWork& work() { return *work_; }

 private:
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::unique_ptr<HeldWork> work_;
};

DriverApi without_context_events(DriverApi api) {
  api.cuCtxRecordEvent = nullptr;
  return api;
}

std::uint64_t calls_of(const std::function<void()>& action) {
  const std::uint64_t before = all_calls();
  action();
  return all_calls() - before;
}

}  // namespace

TEST_CASE("with one context, a record, a wait and a query are one driver call each", "[cuda_fence]") {
  CudaRig rig(instrumented());
  const StreamRef stream = rig.make_stream();
  const EventId event = rig.fence().make_event();
  CHECK(calls_of([&] { rig.fence().record(stream, event); }) == 1);
  CHECK(calls_of([&] { rig.fence().wait(stream, event); }) == 1);
  CHECK(calls_of([&] { rig.fence().query(event); }) == 1);
  CHECK(calls_of([&] { rig.fence().record(kWholeContext, event); }) == 1);
  CHECK(calls_of([&] { rig.fence().wait(stream, event); }) == 1);
  CHECK(calls_of([&] { rig.fence().query(event); }) == 1);
}

TEST_CASE("a record of the whole context includes every context that reaches the memory", "[cuda_fence]") {
  CudaRig rig;
  SecondContext second;
  const StreamRef own = rig.make_stream();
  const EventId early = rig.fence().make_event();
  REQUIRE(rig.fence().add_context(second.context()));
  const EventId late = rig.fence().make_event();
  for (const EventId event : {early, late}) {
    second.work().hold(second.stream());
    REQUIRE(rig.fence().record(kWholeContext, event) == RecordResult::kRecorded);
    CHECK(rig.fence().query(event) == Progress::kPending);
    REQUIRE(rig.fence().wait(own, event));
    rig.submit(own);
    CHECK(rig.stays_pending(own));
    second.work().release(second.stream());
    CHECK(rig.finishes(own));
    CHECK(rig.fence().query(event) == Progress::kDone);
  }
}

TEST_CASE("a stream of another context is recorded there, and an older record elsewhere is not waited for",
          "[cuda_fence]") {
  CudaRig rig;
  SecondContext second;
  if (GENERATE(true, false)) REQUIRE(rig.fence().add_context(second.context()));
  const StreamRef own = rig.make_stream();
  const StreamRef busy = rig.make_stream();
  const EventId event = rig.fence().make_event();
  rig.hold(busy);
  REQUIRE(rig.fence().record(kWholeContext, event) == RecordResult::kRecorded);
  second.work().hold(second.stream());
  REQUIRE(rig.fence().record(ref(second.stream()), event) == RecordResult::kRecorded);
  REQUIRE(rig.fence().wait(own, event));
  rig.submit(own);
  CHECK(rig.stays_pending(own));
  second.work().release(second.stream());
  CHECK(rig.finishes(own));
  CHECK(rig.fence().query(event) == Progress::kDone);
  CHECK(rig.stays_pending(busy));
  rig.release(busy);
  CHECK(rig.fence().take_error() == 0);
}

TEST_CASE("a context that has left is neither asked nor waited for", "[cuda_fence]") {
  CudaRig rig;
  auto first = std::make_unique<SecondContext>();
  auto second = std::make_unique<SecondContext>();
  const EventId event = rig.fence().make_event();
  const StreamRef busy = rig.make_stream();
  rig.hold(busy);
  REQUIRE(rig.fence().record(kWholeContext, event) == RecordResult::kRecorded);
  REQUIRE(rig.fence().add_context(first->context()));
  REQUIRE(rig.fence().add_context(second->context()));
  second->work().hold(second->stream());
  REQUIRE(rig.fence().record(ref(second->stream()), event) == RecordResult::kRecorded);
  rig.fence().remove_context(first->context());
  CHECK(rig.fence().query(event) == Progress::kPending);
  second->work().release(second->stream());
  REQUIRE(second->work().finishes(second->stream()));
  rig.fence().remove_context(second->context());
  CHECK(rig.fence().query(event) == Progress::kDone);
  CHECK(rig.stays_pending(busy));
  rig.release(busy);
  first.reset();
  second.reset();
  CHECK(rig.fence().query(event) == Progress::kDone);
  CHECK(rig.fence().record(kWholeContext, event) == RecordResult::kRecorded);
  CHECK(rig.fence().take_error() == 0);
}

TEST_CASE("a default stream is the owning context's, whatever is current, and the current context stays",
          "[cuda_fence]") {
  CudaRig rig;
  SecondContext second;
  const StreamRef line = ref(GENERATE(as<CUstream>{}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, CUstream{}));
  const EventId event = rig.fence().make_event();
  rig.hold(line);
  const CUcontext current = GENERATE(true, false) ? driver().context : nullptr;
  REQUIRE(driver().cuCtxSetCurrent(current) == CUDA_SUCCESS);
  CHECK(rig.fence().record(line, event) == RecordResult::kRecorded);
  CHECK(rig.fence().query(event) == Progress::kPending);
  CHECK(current_context(driver().api) == current);
  REQUIRE(driver().cuCtxSetCurrent(second.context()) == CUDA_SUCCESS);
  CHECK(rig.fence().record(line, event) == RecordResult::kRecorded);
  CHECK(rig.fence().query(event) == Progress::kPending);
  CHECK(current_context(driver().api) == second.context());
  REQUIRE(driver().cuCtxSetCurrent(driver().context) == CUDA_SUCCESS);
  rig.release(line);
  CHECK(rig.fence().wait_on_host(event, 10'000));
}

TEST_CASE("a stream of a green context is one of its primary context", "[cuda_fence][green]") {
  CUdevResource all{};
  CUdevResource share{};
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  CUstream stream = nullptr;
  unsigned groups = 1;
  REQUIRE(driver().cuDeviceGetDevResource(driver().device, &all, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS);
  REQUIRE(driver().cuDevSmResourceSplitByCount(&share, &groups, &all, nullptr, 0, 8) == CUDA_SUCCESS);
  REQUIRE(driver().cuDevResourceGenerateDesc(&description, &share, 1) == CUDA_SUCCESS);
  REQUIRE(driver().cuGreenCtxCreate(&green, description, driver().device, CU_GREEN_CTX_DEFAULT_STREAM) == CUDA_SUCCESS);
  REQUIRE(driver().cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS);
  CHECK(home_of(driver().api, stream).context == driver().context);
  CHECK(home_of(driver().api, stream).kind == ContextKind::kGreen);
  {
    CudaRig rig;
    const EventId event = rig.fence().make_event();
    const StreamRef own = rig.make_stream();
    rig.hold(ref(stream));
    const StreamRef line = GENERATE(true, false) ? ref(stream) : kWholeContext;
    CHECK(rig.fence().record(line, event) == RecordResult::kRecorded);
    CHECK(rig.fence().query(event) == Progress::kPending);
    CHECK(rig.fence().wait(own, event));
    rig.submit(own);
    CHECK(rig.stays_pending(own));
    rig.release(ref(stream));
    CHECK(rig.finishes(own));
    rig.hold(own);
    CHECK(rig.fence().record(own, event) == RecordResult::kRecorded);
    CHECK(rig.fence().wait(ref(stream), event));
    rig.submit(ref(stream));
    CHECK(rig.stays_pending(ref(stream)));
    rig.release(own);
    CHECK(rig.finishes(ref(stream)));
    CHECK(rig.fence().take_error() == 0);
  }
  CHECK(driver().cuStreamDestroy_v2(stream) == CUDA_SUCCESS);
  CHECK(driver().cuGreenCtxDestroy(green) == CUDA_SUCCESS);
}

TEST_CASE("a thread without a context can record, wait and ask", "[cuda_fence]") {
  CudaRig rig;
  const StreamRef stream = rig.make_stream();
  const NoContext none;
  const EventId event = rig.fence().make_event();
  CHECK(rig.fence().record(stream, event) == RecordResult::kRecorded);
  CHECK(rig.fence().wait(stream, event));
  CHECK(rig.fence().wait_on_host(event, 10'000));
  CHECK(rig.fence().record(kWholeContext, event) == RecordResult::kRecorded);
  CHECK(rig.fence().wait_on_host(event, 10'000));
  CHECK(current_context(driver().api) == nullptr);
  CHECK(rig.fence().take_error() == 0);
}

TEST_CASE("a driver without context events: the record of the whole context waits on the host", "[cuda_fence]") {
  const DriverApi old = without_context_events(driver().api);
  CudaRig rig(old);
  const StreamRef stream = rig.make_stream();
  const EventId event = rig.fence().make_event();
  rig.submit(stream);
  REQUIRE(rig.fence().record(stream, event) == RecordResult::kRecorded);
  CHECK(rig.fence().record(kWholeContext, event) == RecordResult::kComplete);
  CHECK(driver().cuStreamQuery(reinterpret_cast<CUstream>(stream)) == CUDA_SUCCESS);
  CHECK(rig.fence().query(event) == Progress::kDone);
  rig.begin_capture(stream);
  CHECK(rig.fence().record(kWholeContext, event) == RecordResult::kNotNow);
  CHECK(rig.end_capture());
}

TEST_CASE("a refusal is kept for the program, and a lost context is not forgotten for a lesser one", "[cuda_fence]") {
  CudaRig rig(instrumented());
  const StreamRef stream = rig.make_stream();
  const EventId event = rig.fence().make_event();
  REQUIRE(rig.fence().record(stream, event) == RecordResult::kRecorded);
  refuse("cuCtxRecordEvent", 1, CUDA_ERROR_LAUNCH_FAILED);
  CHECK(rig.fence().record(kWholeContext, event) == RecordResult::kFailed);
  refuse("cuStreamWaitEvent", 1, CUDA_ERROR_INVALID_HANDLE);
  CHECK_FALSE(rig.fence().wait(stream, event));
  CHECK(rig.fence().take_error() == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(rig.fence().take_error() == 0);
  refuse("cuEventQuery", 1, CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(rig.fence().record(stream, event) == RecordResult::kRecorded);
  CHECK(rig.fence().query(event) == Progress::kUnknown);
  CHECK(rig.fence().take_error() == CUDA_ERROR_ILLEGAL_ADDRESS);
  refuse("cuEventCreate", 1, CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(rig.fence().make_event() == kNoEvent);
  CHECK(rig.fence().take_error() == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(rig.fence().make_event() == event + 1);
}

TEST_CASE("the host waits for a record while a capture is open, and the capture lives", "[cuda_fence]") {
  CudaRig rig;
  const StreamRef captured = rig.make_stream();
  const StreamRef outside = rig.make_stream();
  const EventId event = rig.fence().make_event();
  rig.submit(outside);
  REQUIRE(rig.fence().record(kWholeContext, event) == RecordResult::kRecorded);
  rig.begin_capture(captured);
  CHECK(rig.fence().wait_on_host(event, 10'000));
  CHECK(rig.fence().query(event) == Progress::kDone);
  CHECK(rig.end_capture());
}

TEST_CASE("where the thread cannot be let off a capture's rules, nothing is asked during one", "[cuda_fence]") {
  CudaRig rig(instrumented());
  const StreamRef captured = rig.make_stream();
  const EventId event = rig.fence().make_event();
  REQUIRE(rig.fence().record(kWholeContext, event) == RecordResult::kRecorded);
  rig.begin_capture(captured);
  refuse("cuThreadExchangeStreamCaptureMode", 1, CUDA_ERROR_UNKNOWN);
  CHECK(rig.fence().query(event) == Progress::kUnknown);
  CHECK(rig.fence().take_error() == 0);
  CHECK(rig.end_capture());
}

TEST_CASE("a capture that no hook saw is answered like one that is known", "[cuda_fence]") {
  CudaRig rig(instrumented());
  const EventId event = rig.fence().make_event();
  refuse("cuCtxRecordEvent", 1, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(rig.fence().record(kWholeContext, event) == RecordResult::kNotNow);
  CHECK(rig.fence().take_error() == 0);
}

TEST_CASE("a stream that a capture was carried into is not recorded", "[cuda_fence]") {
  CudaRig rig;
  const StreamRef origin = rig.make_stream();
  const StreamRef forked = rig.make_stream();
  const EventId event = rig.fence().make_event();
  CUevent fork = nullptr;
  REQUIRE(driver().api.cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
  const auto handle = [](StreamRef stream) { return reinterpret_cast<CUstream>(stream); };
  rig.begin_capture(origin);
  REQUIRE(driver().api.cuEventRecord(fork, handle(origin)) == CUDA_SUCCESS);
  REQUIRE(driver().api.cuStreamWaitEvent(handle(forked), fork, 0) == CUDA_SUCCESS);
  CHECK(rig.fence().record(forked, event) == RecordResult::kNotNow);
  CHECK_FALSE(rig.fence().wait(forked, event));
  REQUIRE(driver().api.cuEventRecord(fork, handle(forked)) == CUDA_SUCCESS);
  REQUIRE(driver().api.cuStreamWaitEvent(handle(origin), fork, 0) == CUDA_SUCCESS);
  CHECK(rig.end_capture());
  CHECK(rig.fence().record(forked, event) == RecordResult::kRecorded);
  driver().api.cuEventDestroy_v2(fork);
}

TEST_CASE("a closed fence has given its events back", "[cuda_fence]") {
  CudaRig rig(instrumented());
  for (int i = 0; i < 3; ++i) rig.fence().make_event();
  reset_instruments();
  rig.fence().close();
  CHECK(calls("cuEventDestroy_v2") == 3);
  rig.fence().close();
  CHECK(calls("cuEventDestroy_v2") == 3);
}

}  // namespace gpupool::test
