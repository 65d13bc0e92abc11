// Contexts that come and go, forks, exits.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/preload/core/program.h"

CASE(reset) {
  const CUcontext context = program::begin();
  CUdeviceptr stale = 0;
  OK(cuMemAlloc(&stale, 64 << 20));
  OK(cuDevicePrimaryCtxReset(0));
  EQUAL(cuMemFree(stale) == CUDA_SUCCESS, false);
  static_cast<void>(context);
  CUcontext again = nullptr;
  OK(cuDevicePrimaryCtxRetain(&again, 0));
  OK(cuCtxSetCurrent(again));
  CUdeviceptr fresh = 0;
  OK(cuMemAlloc(&fresh, 64 << 20));
  OK(cuMemFree(fresh));
}

CASE(release) {
  program::begin();
  CUdeviceptr stale = 0;
  OK(cuMemAlloc(&stale, 64 << 20));
  OK(cuDevicePrimaryCtxRelease(0));
  CUdeviceptr block = 0;
  EQUAL(cuMemAlloc(&block, 100) == CUDA_SUCCESS, false);
  EQUAL(cuMemFree(stale) == CUDA_SUCCESS, false);
}

CASE(second_context) {
  const CUcontext primary = program::begin();
  CUdeviceptr first = 0;
  OK(cuMemAlloc(&first, 1 << 20));
  CUcontext second = nullptr;
#if CUDA_VERSION >= 13000
  OK(cuCtxCreate(&second, nullptr, 0, 0));
#else
  OK(cuCtxCreate(&second, 0, 0));
#endif
  CUdeviceptr other = 0;
  OK(cuMemAlloc(&other, 1 << 20));
  CUcontext told = nullptr;
  OK(cuPointerGetAttribute(&told, CU_POINTER_ATTRIBUTE_CONTEXT, other));
  HOLDS(told == second);
  OK(cuMemFree(first));  // by its address, whatever is current
  OK(cuMemAlloc(&other, 1 << 20));
  OK(cuCtxDestroy(second));
  OK(cuCtxSetCurrent(primary));
  EQUAL(cuMemFree(other) == CUDA_SUCCESS, false);
  OK(cuMemAlloc(&first, 1 << 20));
  OK(cuMemFree(first));
}

CASE(fork_before) {
  const pid_t child = fork();
  if (child == 0) {
    program::begin();
    CUdeviceptr block = 0;
    OK(cuMemAlloc(&block, 4096));
    OK(cuMemFree(block));
    std::exit(program::failures());
  }
  int status = 0;
  waitpid(child, &status, 0);
  EQUAL(status, 0);
}

CASE(fork_after) {
  program::begin();
  CUdeviceptr block = 0;
  OK(cuMemAlloc(&block, 4096));
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) std::exit(0);
    int status = 0;
    waitpid(child, &status, 0);
    EQUAL(status, 0);
  }
  OK(cuMemFree(block));
}

CASE(fork_among_threads) {
#ifdef __SANITIZE_ADDRESS__
  return;  // a lock of its allocator may be held for ever in the child
#endif
  const CUcontext context = program::begin();
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      OK(cuCtxSetCurrent(context));
      while (!stop) {
        CUdeviceptr block = 0;
        OK(cuMemAlloc(&block, 10000));
        OK(cuMemFree(block));
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    if (child == 0) std::exit(0);  // through destructors, with whatever the threads had locked
    int status = 0;
    waitpid(child, &status, 0);
    EQUAL(status, 0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

CASE(late_free) {
  program::begin();
  static CUdeviceptr block = 0;
  OK(cuMemAlloc(&block, 4096));
  std::atexit([] { cuMemFree(block); });
}

CASE(two_devices) {
  program::begin(1);
  CUdeviceptr second = 0;
  OK(cuMemAlloc(&second, 4096));
  program::begin(0);
  CUdeviceptr first = 0;
  OK(cuMemAlloc(&first, 4096));
  OK(cuMemFree(second));
  CUcontext current = nullptr;
  OK(cuCtxGetCurrent(&current));
  CUdevice device = -1;
  OK(cuCtxGetDevice(&device));
  EQUAL(device, 0);
  OK(cuMemFree(first));
}

CASE(user_vmm) {
  program::begin();
  std::size_t free = 0;
  std::size_t total = 0;
  OK(cuMemGetInfo(&free, &total));
  CUdeviceptr large = 0;
  OK(cuMemAlloc(&large, total / 4 * 3));
  OK(cuMemFree(large));
  OK(cuCtxSynchronize());
  // More than the card has left beside what the pool holds now: the pool makes room.
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemGenericAllocationHandle handle = 0;
  OK(cuMemCreate(&handle, total / 2, &prop, 0));
  OK(cuMemRelease(handle));
}

CASE(nothing) { OK(cuInit(0)); }

// Stream-ordered memory is its device's and outlives the context; a new pool may lie where it lay.
CASE(free_after_reset) {
  program::begin();
  const CUstream stream = program::new_stream();
  std::vector<CUdeviceptr> blocks;
  for (unsigned i = 0; i < 24; ++i) blocks.push_back(program::take_ordered(300 * 1024, stream));
  OK(cuMemFreeAsync(blocks.front(), stream));  // where the first new block may lie
  OK(cuDevicePrimaryCtxReset(0));
  program::begin();
  const CUdeviceptr fresh = program::take(300 * 1024);
  for (unsigned i = 1; i < blocks.size(); ++i) OK(cuMemFreeAsync(blocks[i], nullptr));
  CUmemoryPool pool = nullptr;
  OK(cuDeviceGetDefaultMemPool(&pool, 0));
  cuuint64_t used = 1;
  OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  EQUAL(used, 0u);
  OK(cuMemFree(fresh));
}
