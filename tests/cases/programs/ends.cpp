// What ends while the pool goes on: threads, streams, contexts by every way there is; faults; and drivers that lack
// what newer ones have.
#include <pthread.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/preload/core/kernels.h"

namespace {

using program::Kernels;
using program::new_context;
using program::take;
using program::take_ordered;

constexpr std::size_t kMiB = std::size_t{1} << 20;

// The card's free memory as a fresh context of another kind sees it: what is held by a tape that should be gone is
// missing.
std::size_t free_of_card() {
  std::size_t free = 0;
  std::size_t total = 0;
  const CUcontext context = new_context();
  OK(cuMemGetInfo(&free, &total));
  OK(cuCtxDestroy(context));
  return free;
}

}  // namespace

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // old programs call it still
CASE(detached_context) {
  const CUcontext primary = program::begin();
  const CUcontext context = new_context();
  CUcontext attached = nullptr;
  OK(cuCtxAttach(&attached, 0));
  HOLDS(attached == context);
  const CUdeviceptr block = take(64 * kMiB);
  OK(cuCtxDetach(context));  // the first of two
  OK(cuMemFree(block));
  const CUdeviceptr gone = take(64 * kMiB);
  OK(cuCtxDetach(context));
  OK(cuCtxSetCurrent(primary));
  EQUAL(cuMemFree(gone), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuCtxDetach(primary), CUDA_ERROR_INVALID_CONTEXT);
  OK(cuMemFree(take(kMiB)));
}

#pragma GCC diagnostic pop

// The last that holds the primary context is a green one.
CASE(green_context_is_the_last) {
  program::begin();
  const std::size_t before = free_of_card();
  CUdevResource all{};
  CUdevResource share{};
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  unsigned groups = 1;
  OK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
  OK(cuDevSmResourceSplitByCount(&share, &groups, &all, nullptr, 0, 8));
  OK(cuDevResourceGenerateDesc(&description, &share, 1));
  OK(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  const CUdeviceptr block = take(64 * kMiB);
  OK(cuDevicePrimaryCtxRelease(0));
  OK(cuMemFree(block));
  const CUdeviceptr stale = take(64 * kMiB);
  OK(cuGreenCtxDestroy(green));
  HOLDS(cuMemFree(stale) != CUDA_SUCCESS);
  EQUAL(free_of_card(), before);
  program::begin();
  OK(cuMemFree(take(kMiB)));
}

// Memory of one device's pool, freed on streams of another device's primary context that is then released.
CASE(streams_of_a_released_primary) {
  const CUcontext zero = program::begin(0);
  for (int round = 0; round < 5; ++round) {
    const CUdeviceptr first = take(kMiB);
    const CUdeviceptr second = take(kMiB);
    const CUcontext one = program::begin(1);
    const CUstream stream = program::new_stream();
    OK(cuMemFreeAsync(first, stream));
    OK(cuMemFreeAsync(second, stream));
    OK(cuCtxSetCurrent(zero));
    OK(cuDevicePrimaryCtxRelease(1));
    static_cast<void>(one);
    const CUstream a = program::new_stream();
    const CUstream b = program::new_stream();
    CUdeviceptr blocks[4] = {};
    for (CUdeviceptr& block : blocks) block = take_ordered(kMiB / 2, &block - blocks < 2 ? a : b);
    for (const CUdeviceptr block : blocks) OK(cuMemFreeAsync(block, b));
    OK(cuMemFree(take(2 * kMiB)));
    OK(cuStreamDestroy(a));
    OK(cuStreamDestroy(b));
  }
}

namespace {

CUcontext context_of_late_frees = nullptr;

// Frees what the thread still has, after other thread-local data have gone, and takes some more.
void free_late(void* block) {
  const auto address = reinterpret_cast<CUdeviceptr>(block);
  OK(cuMemFreeAsync(address, CU_STREAM_PER_THREAD));
  OK(cuMemFreeAsync(take_ordered(kMiB, CU_STREAM_PER_THREAD), CU_STREAM_PER_THREAD));
}

}  // namespace

CASE(late_frees_of_a_thread) {
  context_of_late_frees = program::begin();
  Kernels kernels;
  // Made after the pool's own, and so destroyed after it.
  OK(cuMemFreeAsync(take_ordered(kMiB, CU_STREAM_PER_THREAD), CU_STREAM_PER_THREAD));
  pthread_key_t key{};
  EQUAL(pthread_key_create(&key, free_late), 0);
  for (std::uint32_t round = 0; round < 20; ++round) {
    std::thread([&] {
      OK(cuCtxSetCurrent(context_of_late_frees));
      const CUdeviceptr block = take_ordered(kMiB, CU_STREAM_PER_THREAD);
      kernels.spin(CU_STREAM_PER_THREAD, 1000);
      kernels.fill(CU_STREAM_PER_THREAD, block, kMiB, round);
      pthread_setspecific(key, reinterpret_cast<void*>(block));
    }).join();
    const CUstream stream = program::new_stream();
    const CUdeviceptr next = take_ordered(kMiB, stream);
    kernels.fill(stream, next, kMiB, 100 + round);
    kernels.spin(stream, 2000);
    kernels.check(stream, next, kMiB, 100 + round);
    OK(cuMemFreeAsync(next, stream));
    OK(cuStreamDestroy(stream));
  }
  EQUAL(kernels.wrong_bytes(), 0u);
}

// The current context has been destroyed by another thread: what needs one says so.
CASE(destroyed_under_a_thread) {
  const CUcontext primary = program::begin();
  const CUdeviceptr block = take(kMiB);
  const CUcontext gone = program::new_context();
  CUdeviceptr fresh = 0;
  CUipcMemHandle handle;
  OK(cuCtxSetCurrent(gone));
  std::thread([&] { OK(cuCtxDestroy(gone)); }).join();
  EQUAL(cuMemAlloc(&fresh, 1000), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EQUAL(cuMemAllocAsync(&fresh, 1000, nullptr), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EQUAL(cuIpcGetMemHandle(&handle, block), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  OK(cuCtxSetCurrent(primary));
  OK(cuMemFree(block));
}

// A kernel has faulted: every request and free says so from then on, also what the pool could serve by itself.
CASE(faults_are_told) {
  program::begin();
  Kernels kernels;
  const CUstream stream = program::new_stream();
  OK(cuMemFree(take(kMiB)));
  OK(cuMemFreeAsync(take_ordered(kMiB, stream), stream));
  const CUdeviceptr plain = take(kMiB);
  const CUdeviceptr ordered = take_ordered(kMiB, stream);
  CUmemoryPool pool = nullptr;
  OK(cuDeviceGetDefaultMemPool(&pool, 0));
  OK(cuCtxSynchronize());
  kernels.fault(stream);
  EQUAL(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  CUdeviceptr block = 0;
  std::size_t pitch = 0;
  const char* first = std::getenv("TEST_FIRST");
  if (first && std::string(first) == "ordered") {
    EQUAL(cuMemAllocAsync(&block, 1000, stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    EQUAL(cuMemFreeAsync(ordered, stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  EQUAL(cuMemAlloc(&block, 1000), CUDA_ERROR_ILLEGAL_ADDRESS);
  EQUAL(cuMemAllocPitch(&block, &pitch, 100, 100, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
  EQUAL(cuMemAllocAsync(&block, 1000, stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  EQUAL(cuMemAllocAsync(&block, 1000, nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
  EQUAL(cuMemAllocFromPoolAsync(&block, 1000, pool, stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  EQUAL(cuMemFree(plain), CUDA_ERROR_ILLEGAL_ADDRESS);
  EQUAL(cuMemFreeAsync(ordered, stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  // A reset makes all well again.
  OK(cuDevicePrimaryCtxReset(0));
  program::begin();
  OK(cuMemFree(take(kMiB)));
}

// Access of another device to a pool's memory, granted before there is any.
CASE(access_before_memory) {
  const CUcontext zero = program::begin(0);
  CUmemoryPool pool = nullptr;
  OK(cuDeviceGetDefaultMemPool(&pool, 0));
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {1}};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  OK(cuMemPoolSetAccess(pool, &access, 1));
  const CUstream stream = program::new_stream();
  const CUdeviceptr block = take_ordered(kMiB, stream);
  OK(cuStreamSynchronize(stream));
  program::begin(1);
  Kernels kernels;
  const CUstream there = program::new_stream();
  kernels.fill(there, block, kMiB, 5);
  kernels.check(there, block, kMiB, 5);
  EQUAL(kernels.wrong_bytes(), 0u);
  OK(cuCtxSetCurrent(zero));
  OK(cuMemFreeAsync(block, stream));
  OK(cuStreamSynchronize(stream));
}

// One thread's free has work before it that another thread lets go on only after an allocation of its own.
CASE(free_does_not_stop_others) {
  const CUcontext context = program::begin();
  Kernels kernels;
  const CUdeviceptr flag = take(4);
  OK(cuMemsetD32(flag, 0, 1));
  OK(cuCtxSynchronize());
  const CUdeviceptr block = take(kMiB);
  const CUstream waiting = program::new_stream();
  kernels.wait_flag(waiting, flag);
  kernels.fill(waiting, block, kMiB, 1);
  std::thread other([&] {
    OK(cuCtxSetCurrent(context));
    for (int i = 0; i < 200; ++i) OK(cuMemFreeAsync(take_ordered(kMiB, waiting), waiting));
    const CUdeviceptr own = take(40 * kMiB);
    kernels.set_flag(program::new_stream(), flag);
    static_cast<void>(own);
  });
  OK(cuMemFree(block));
  other.join();
  OK(cuCtxSynchronize());
  EQUAL(kernels.wrong_bytes(), 0u);
}

// Highest use of a memory pool, some of whose requests the driver served (run with pool.direct_above).
CASE(high_marks) {
  program::begin();
  const CUstream stream = program::new_stream();
  CUmemoryPool pool = nullptr;
  OK(cuDeviceGetDefaultMemPool(&pool, 0));
  const auto value_of = [pool](CUmemPool_attribute attribute) {
    cuuint64_t value = 0;
    OK(cuMemPoolGetAttribute(pool, attribute, &value));
    return value;
  };
  const CUdeviceptr small = take_ordered(10 * kMiB, stream);
  EQUAL(value_of(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 10 * kMiB);
  OK(cuMemFreeAsync(small, stream));
  OK(cuStreamSynchronize(stream));
  const CUdeviceptr large = take_ordered(100 * kMiB, stream);
  EQUAL(value_of(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 100 * kMiB);
  EQUAL(value_of(CU_MEMPOOL_ATTR_USED_MEM_HIGH), 100 * kMiB);
  OK(cuMemFreeAsync(large, stream));
  OK(cuStreamSynchronize(stream));
  EQUAL(value_of(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0u);
  EQUAL(value_of(CU_MEMPOOL_ATTR_USED_MEM_HIGH), 100 * kMiB);
}
