// What every fence must do, whatever it is made of: the contract of pool/fence.h, once for CUDA and once for the memory
// fence.
#include "tests/device/fence_rigs.h"

namespace gpupool::test {

#define FENCE_CONTRACT(name) TEMPLATE_TEST_CASE(name, "[fence]", CudaRig, MemoryRig)

FENCE_CONTRACT("an event that was never recorded is complete and delays nobody") {
  TestType rig;
  const StreamRef stream = rig.make_stream();
  const EventId event = rig.fence().make_event();
  REQUIRE(event != kNoEvent);
  CHECK(rig.fence().query(event) == Progress::kDone);
  CHECK(rig.fence().wait_on_host(event, 0));
  CHECK(rig.fence().wait(stream, event));
  rig.submit(stream);
  CHECK(rig.finishes(stream));
  CHECK(rig.fence().take_error() == 0);
}

FENCE_CONTRACT("events are different ones") {
  TestType rig;
  const EventId first = rig.fence().make_event();
  const EventId second = rig.fence().make_event();
  CHECK(first != second);
  const StreamRef held = rig.make_stream();
  rig.hold(held);
  REQUIRE(rig.fence().record(held, first) == RecordResult::kRecorded);
  CHECK(rig.fence().query(first) == Progress::kPending);
  CHECK(rig.fence().query(second) == Progress::kDone);
}

FENCE_CONTRACT("a record of a stream is complete when the stream's earlier work is") {
  TestType rig;
  const StreamRef stream = rig.make_stream();
  const EventId event = rig.fence().make_event();
  rig.hold(stream);
  REQUIRE(rig.fence().record(stream, event) == RecordResult::kRecorded);
  CHECK(rig.fence().query(event) == Progress::kPending);
  CHECK_FALSE(rig.fence().wait_on_host(event, 5));
  rig.release(stream);
  REQUIRE(rig.finishes(stream));
  CHECK(rig.fence().wait_on_host(event, 1000));
  CHECK(rig.fence().query(event) == Progress::kDone);
}

FENCE_CONTRACT("a waiting stream runs behind the record, other streams do not") {
  TestType rig;
  const StreamRef held = rig.make_stream();
  const StreamRef waiting = rig.make_stream();
  const StreamRef other = rig.make_stream();
  const EventId event = rig.fence().make_event();
  rig.hold(held);
  REQUIRE(rig.fence().record(held, event) == RecordResult::kRecorded);
  REQUIRE(rig.fence().wait(waiting, event));
  rig.submit(waiting);
  rig.submit(other);
  CHECK(rig.finishes(other));
  CHECK(rig.stays_pending(waiting));
  rig.release(held);
  CHECK(rig.finishes(waiting));
}

FENCE_CONTRACT("a record does not include what is submitted after it") {
  TestType rig;
  const StreamRef line = rig.make_stream();
  const StreamRef waiting = rig.make_stream();
  const EventId of_stream = rig.fence().make_event();
  const EventId of_context = rig.fence().make_event();
  rig.submit(line);
  REQUIRE(rig.fence().record(line, of_stream) == RecordResult::kRecorded);
  REQUIRE(rig.fence().record(kWholeContext, of_context) == RecordResult::kRecorded);
  rig.hold(line);
  REQUIRE(rig.fence().wait(waiting, of_stream));
  REQUIRE(rig.fence().wait(waiting, of_context));
  rig.submit(waiting);
  CHECK(rig.finishes(waiting));
  CHECK(rig.fence().wait_on_host(of_stream, 1000));
  CHECK(rig.fence().wait_on_host(of_context, 1000));
  CHECK(rig.stays_pending(line));
}

FENCE_CONTRACT("an event that is recorded again stands for the new record alone") {
  TestType rig;
  const StreamRef held = rig.make_stream();
  const StreamRef idle = rig.make_stream();
  const EventId event = rig.fence().make_event();
  rig.hold(held);
  REQUIRE(rig.fence().record(kWholeContext, event) == RecordResult::kRecorded);
  REQUIRE(rig.fence().query(event) == Progress::kPending);
  rig.submit(idle);
  REQUIRE(rig.fence().record(idle, event) == RecordResult::kRecorded);
  REQUIRE(rig.finishes(idle));
  CHECK(rig.fence().query(event) == Progress::kDone);
}

FENCE_CONTRACT("a record of the whole context includes every stream") {
  TestType rig;
  const StreamRef first = rig.make_stream();
  const StreamRef second = rig.make_stream();
  const StreamRef waiting = rig.make_stream();
  const EventId event = rig.fence().make_event();
  rig.hold(first);
  rig.hold(second);
  REQUIRE(rig.fence().record(kWholeContext, event) == RecordResult::kRecorded);
  REQUIRE(rig.fence().wait(waiting, event));
  rig.submit(waiting);
  rig.release(first);
  REQUIRE(rig.finishes(first));
  CHECK(rig.stays_pending(waiting));
  CHECK(rig.fence().query(event) == Progress::kPending);
  rig.release(second);
  CHECK(rig.finishes(waiting));
  CHECK(rig.fence().query(event) == Progress::kDone);
}

FENCE_CONTRACT("order passes on from stream to stream") {
  TestType rig;
  const StreamRef held = rig.make_stream();
  const StreamRef middle = rig.make_stream();
  const StreamRef last = rig.make_stream();
  const EventId first = rig.fence().make_event();
  const EventId second = rig.fence().make_event();
  rig.hold(held);
  REQUIRE(rig.fence().record(held, first) == RecordResult::kRecorded);
  REQUIRE(rig.fence().wait(middle, first));
  REQUIRE(rig.fence().record(middle, second) == RecordResult::kRecorded);
  REQUIRE(rig.fence().wait(last, second));
  rig.submit(last);
  CHECK(rig.stays_pending(last));
  CHECK(rig.fence().query(second) == Progress::kPending);
  rig.release(held);
  CHECK(rig.finishes(last));
}

FENCE_CONTRACT("while a capture is open, only streams outside it are recorded and wait, all may ask, and it survives") {
  TestType rig;
  const StreamRef captured = rig.make_stream();
  const StreamRef outside = rig.make_stream();
  const EventId event = rig.fence().make_event();
  const EventId spare = rig.fence().make_event();
  rig.submit(outside);
  REQUIRE(rig.fence().record(outside, event) == RecordResult::kRecorded);
  rig.begin_capture(captured);
  CHECK(rig.fence().record(kWholeContext, spare) == RecordResult::kNotNow);
  CHECK(rig.fence().record(captured, spare) == RecordResult::kNotNow);
  CHECK_FALSE(rig.fence().wait(captured, event));
  CHECK(rig.fence().query(event) != Progress::kUnknown);
  CHECK(rig.fence().record(outside, spare) == RecordResult::kRecorded);
  CHECK(rig.fence().wait(outside, event));
  CHECK(rig.fence().take_error() == 0);
  CHECK(rig.end_capture());
  CHECK(rig.fence().record(kWholeContext, spare) == RecordResult::kRecorded);
  CHECK(rig.fence().wait(captured, spare));
}

}  // namespace gpupool::test
