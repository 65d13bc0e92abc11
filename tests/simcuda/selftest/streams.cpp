// Streams: when work runs, which default streams order what, identity, waits on values.
#include <atomic>
#include <thread>

#include "tests/simcuda/selftest/helpers.h"

using namespace gpupool::sim;

namespace {

unsigned long long id_of(CUstream stream) {
  unsigned long long id = 0;
  CU(cuStreamGetId(stream, &id));
  return id;
}

}  // namespace

TEST_CASE("nothing runs before somebody waits", "[streams]") {
  Session session;
  const CUstream stream = make_stream();
  const CUdeviceptr p = allocate(4096);
  fill(stream, p, 4096, 1);
  CHECK(simcuda_pending() == 1);
  CHECK(cuStreamQuery(stream) == CUDA_SUCCESS);
  fill(stream, p, 4096, 1);
  spin(stream, 1000);
  CHECK(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
  CU(cuStreamSynchronize(stream));
  CHECK(simcuda_pending() == 0);
}

TEST_CASE("a wait for one stream leaves the others late", "[streams]") {
  Session session;
  const CUstream a = make_stream();
  const CUstream b = make_stream();
  spin(a, 10);
  spin(b, 10);
  CU(cuStreamSynchronize(b));
  CHECK(simcuda_pending() == 1);
  CU(cuCtxSynchronize());
}

TEST_CASE("a polled stream gets done", "[streams]") {
  Session session;
  const CUstream stream = make_stream();
  spin(stream, 500);
  int polls = 0;
  while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) REQUIRE(++polls < 100);
  CHECK(polls > 1);
}

TEST_CASE("the legacy stream orders blocking streams, not the others", "[streams]") {
  Session session;
  Counter wrong;
  const CUdeviceptr p = allocate(4096);
  const CUstream stream = make_stream(GENERATE(CU_STREAM_DEFAULT, CU_STREAM_NON_BLOCKING));
  unsigned flags = 0;
  CU(cuStreamGetFlags(stream, &flags));
  SECTION("legacy behind blocking") {
    fill(stream, p, 4096, 1);
    fill(CU_STREAM_LEGACY, p, 4096, 2);
    check(CU_STREAM_LEGACY, p, 4096, 2, wrong.address());
  }
  SECTION("blocking behind legacy") {
    fill(CU_STREAM_LEGACY, p, 4096, 1);
    fill(stream, p, 4096, 2);
    check(stream, p, 4096, 2, wrong.address());
  }
  CU(cuCtxSynchronize());
  CHECK((wrong.value() == 0) == (flags == CU_STREAM_DEFAULT));
}

TEST_CASE("stream 0 is the legacy stream; the thread's own is another in each thread", "[streams]") {
  Session session;
  const auto legacy = id_of(nullptr);
  const auto mine = id_of(CU_STREAM_PER_THREAD);
  CHECK(id_of(CU_STREAM_LEGACY) == legacy);
  CHECK(mine != legacy);
  std::thread other([&] {
    CU(cuCtxSetCurrent(session.context));
    CHECK(id_of(CU_STREAM_PER_THREAD) != mine);
    CHECK(id_of(nullptr) == legacy);
  });
  other.join();
}

TEST_CASE("a destroyed stream's work still runs, and its handle names the next stream", "[streams]") {
  Session session;
  Counter wrong;
  const CUdeviceptr p = allocate(4096);
  const CUstream first = make_stream();
  const auto first_id = id_of(first);
  fill(first, p, 4096, 3);
  CU(cuStreamDestroy(first));
  const CUstream second = make_stream();
  CHECK(second == first);
  CHECK(id_of(second) != first_id);
  CHECK(simcuda_pending() == 1);
  CU(cuCtxSynchronize());
  check(second, p, 4096, 3, wrong.address());
  CU(cuStreamSynchronize(second));
  CHECK(wrong.value() == 0);
}

TEST_CASE("a wait for a value ends when another stream writes it", "[streams]") {
  Session session;
  const CUdeviceptr flag = allocate(4);
  CU(cuMemsetD32(flag, 0, 1));
  CU(cuCtxSynchronize());
  const CUstream a = make_stream();
  const CUstream b = make_stream();
  CU(cuStreamWaitValue32(a, flag, 7, CU_STREAM_WAIT_VALUE_EQ));
  CU(cuStreamWriteValue32(b, flag, 7, 0));
  CU(cuStreamSynchronize(a));
  CU(cuMemsetD32(flag, 0, 1));
  CU(cuCtxSynchronize());
  wait_flag(a, flag);
  set_flag(b, flag);
  CU(cuStreamSynchronize(a));
}

TEST_CASE("host functions run on the way, without the driver being locked", "[streams]") {
  Session session;
  const CUstream stream = make_stream();
  std::atomic<int> called{0};
  const auto function = [](void* data) {
    size_t free = 0;
    size_t total = 0;
    // A program must not do this on a real device; here it shows that nothing is held.
    cuMemGetInfo(&free, &total);
    ++*static_cast<std::atomic<int>*>(data);
  };
  CU(cuLaunchHostFunc(stream, function, &called));
  CHECK(called == 0);
  CU(cuStreamSynchronize(stream));
  CHECK(called == 1);
}

TEST_CASE("threads submit and wait at once", "[streams]") {
  Session session;
  std::vector<std::thread> threads;
  std::atomic<uint32_t> wrong{0};
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      cuCtxSetCurrent(session.context);
      CUstream stream = nullptr;
      cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
      for (uint32_t round = 0; round < 200; ++round) {
        CUdeviceptr p = 0;
        uint32_t value = 0;
        if (cuMemAlloc(&p, 1024) != CUDA_SUCCESS) ++wrong;
        cuMemsetD32Async(p, t * 1000 + round, 256, stream);
        cuMemcpyDtoHAsync(&value, p + 1020, 4, stream);
        if (value != t * 1000 + round) ++wrong;
        if (cuMemFree(p) != CUDA_SUCCESS) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(used_bytes() == 0);
}
