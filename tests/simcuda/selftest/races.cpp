// Why there is a simulator at all: memory that is reused without a fence must be seen as wrong data, and never with
// one.
#include <thread>

#include "tests/simcuda/selftest/helpers.h"

using namespace gpupool::sim;

namespace {

constexpr uint64_t kBytes = 4096;

// A uses a block, B uses it next; `fence` is called between the two. How many bytes either of them read wrong.
template <class Fence>
uint32_t reuse(Fence fence) {
  Counter wrong;
  const CUstream a = make_stream();
  const CUstream b = make_stream();
  const CUdeviceptr block = allocate(kBytes);
  fill(a, block, kBytes, 1);
  check(a, block, kBytes, 1, wrong.address());
  fence(a, b);
  fill(b, block, kBytes, 2);
  check(b, block, kBytes, 2, wrong.address());
  CU(cuCtxSynchronize());
  return wrong.value();
}

}  // namespace

TEST_CASE("a reuse without a fence is seen as wrong data", "[races]") {
  Session session;
  CHECK(reuse([](CUstream, CUstream) {}) > 0);
}

TEST_CASE("it is seen whatever the host waits for", "[races]") {
  Session session;
  Counter wrong;
  const CUstream a = make_stream();
  const CUstream b = make_stream();
  const CUdeviceptr block = allocate(kBytes);
  SECTION("a late reader of the old owner, when only the old owner is waited for") {
    fill(a, block, kBytes, 1);
    check(a, block, kBytes, 1, wrong.address());
    fill(b, block, kBytes, 2);
    CU(cuStreamSynchronize(a));
  }
  SECTION("a late writer of the old owner, when only the new owner is waited for") {
    fill(a, block, kBytes, 1);
    fill(b, block, kBytes, 2);
    check(b, block, kBytes, 2, wrong.address());
    CU(cuStreamSynchronize(b));
  }
  SECTION("a reader behind other work") {
    spin(a, 500);
    fill(a, block, kBytes, 1);
    spin(b, 5);
    fill(b, block, kBytes, 2);
    spin(b, 5);
    check(b, block, kBytes, 2, wrong.address());
    CU(cuStreamSynchronize(b));
  }
  CHECK(wrong.value() > 0);
}

TEST_CASE("every kind of fence makes the reuse right", "[races]") {
  Session session;
  const CUevent event = make_event();
  SECTION("an event of the stream") {
    CHECK(reuse([&](CUstream a, CUstream b) {
            CU(cuEventRecord(event, a));
            CU(cuStreamWaitEvent(b, event, 0));
          }) == 0);
  }
  SECTION("an event of the context, waited for by the context") {
    CHECK(reuse([&](CUstream, CUstream) {
            CU(cuCtxRecordEvent(session.context, event));
            CU(cuCtxWaitEvent(session.context, event));
          }) == 0);
  }
  SECTION("an event of the context, waited for by the stream") {
    CHECK(reuse([&](CUstream, CUstream b) {
            CU(cuCtxRecordEvent(session.context, event));
            CU(cuStreamWaitEvent(b, event, 0));
          }) == 0);
  }
  SECTION("the host") {
    CHECK(reuse([&](CUstream a, CUstream) { CU(cuStreamSynchronize(a)); }) == 0);
  }
  SECTION("a free, which waits for all") {
    const CUdeviceptr other = allocate(512);
    CHECK(reuse([&](CUstream, CUstream) { CU(cuMemFree(other)); }) == 0);
  }
}

TEST_CASE("a fence that is made too early does not cover later work", "[races]") {
  Session session;
  Counter wrong;
  const CUstream a = make_stream();
  const CUstream b = make_stream();
  const CUevent event = make_event();
  const CUdeviceptr block = allocate(kBytes);
  CU(cuCtxRecordEvent(session.context, event));
  fill(a, block, kBytes, 1);
  CU(cuCtxWaitEvent(session.context, event));
  fill(b, block, kBytes, 2);
  check(b, block, kBytes, 2, wrong.address());
  CU(cuCtxSynchronize());
  CHECK(wrong.value() > 0);
}

TEST_CASE("a fence through a third stream is a fence", "[races]") {
  Session session;
  const CUstream middle = make_stream();
  const CUevent first = make_event();
  const CUevent second = make_event();
  CHECK(reuse([&](CUstream a, CUstream b) {
          CU(cuEventRecord(first, a));
          CU(cuStreamWaitEvent(middle, first, 0));
          CU(cuEventRecord(second, middle));
          CU(cuStreamWaitEvent(b, second, 0));
        }) == 0);
}

TEST_CASE("a random schedule finds a missing fence within a few seeds and never blames a right program", "[races]") {
  Session session;
  const CUevent event = make_event();
  unsigned seen = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    simcuda_set_schedule("random", seed);
    seen += reuse([](CUstream, CUstream) {}) > 0;
    CHECK(reuse([&](CUstream a, CUstream b) {
            CU(cuEventRecord(event, a));
            CU(cuStreamWaitEvent(b, event, 0));
          }) == 0);
  }
  CHECK(seen > 5);
}

TEST_CASE("the driver's own stream-ordered reuse is right", "[races]") {
  Session session;
  Counter wrong;
  CUstream streams[3];
  for (CUstream& stream : streams) stream = make_stream();
  uint32_t seed = 1;
  for (int round = 0; round < 200; ++round) {
    const CUstream stream = streams[round % 3];
    CUdeviceptr block = 0;
    CU(cuMemAllocAsync(&block, 8 * kBytes, stream));
    fill(stream, block, 8 * kBytes, ++seed);
    check(stream, block, 8 * kBytes, seed, wrong.address());
    CU(cuMemFreeAsync(block, stream));
  }
  CU(cuCtxSynchronize());
  CHECK(wrong.value() == 0);
}

TEST_CASE("threads with their own default streams do not order each other", "[races]") {
  Session session;
  Counter wrong;
  const CUdeviceptr block = allocate(kBytes);
  fill(CU_STREAM_PER_THREAD, block, kBytes, 1);
  std::thread other([&] {
    CU(cuCtxSetCurrent(session.context));
    fill(CU_STREAM_PER_THREAD, block, kBytes, 2);
    check(CU_STREAM_PER_THREAD, block, kBytes, 2, wrong.address());
    CU(cuStreamSynchronize(CU_STREAM_PER_THREAD));
  });
  other.join();
  CHECK(wrong.value() > 0);
}
