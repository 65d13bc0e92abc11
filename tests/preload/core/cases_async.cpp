// Stream-ordered memory, the program's memory pools, captures.
#include <cstring>
#include <thread>
#include <vector>

#include "tests/preload/core/program.h"

namespace {

constexpr std::size_t kStep = 32 << 20;

CUmemoryPool default_pool(CUdevice device = 0) {
  CUmemoryPool pool = nullptr;
  OK(cuDeviceGetDefaultMemPool(&pool, device));
  return pool;
}

cuuint64_t value_of(CUmemoryPool pool, CUmemPool_attribute attribute) {
  cuuint64_t value = 0;
  OK(cuMemPoolGetAttribute(pool, attribute, &value));
  return value;
}

CUmemoryPool new_pool(CUmemAllocationHandleType handles, std::size_t most = 0) {
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.handleTypes = handles;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  props.maxSize = most;
  CUmemoryPool pool = nullptr;
  OK(cuMemPoolCreate(&pool, &props));
  return pool;
}

}  // namespace

CASE(async) {
  program::begin();
  const CUstream stream = program::new_stream();
  CUdeviceptr a = 0;
  CUdeviceptr b = 0;
  EQUAL(cuMemAllocAsync(&a, std::size_t{1} << 45, stream), CUDA_ERROR_OUT_OF_MEMORY);
  EQUAL(cuMemAllocAsync(nullptr, 16, stream), CUDA_ERROR_INVALID_VALUE);
  a = 1;
  OK(cuMemAllocAsync(&a, 0, stream));
  EQUAL(a, 0u);
  OK(cuMemAllocAsync(&a, 1000, stream));
  OK(cuMemAllocAsync(&b, 1000, stream));
  EQUAL(cuMemFreeAsync(a + 512, stream), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFree(a));
  EQUAL(cuMemFree(a), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemFreeAsync(a, stream), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFreeAsync(b, stream));
  EQUAL(cuMemFreeAsync(b, stream), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFreeAsync(0, stream));
  OK(cuMemAlloc(&a, 1000));
  OK(cuMemFreeAsync(a, stream));
  OK(cuStreamSynchronize(stream));
  EQUAL(cuMemFree(a), CUDA_ERROR_INVALID_VALUE);
  for (CUstream special : {CUstream{}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
    OK(cuMemAllocAsync(&a, 4096, special));
    OK(cuMemFreeAsync(a, special));
  }
  OK(cuStreamDestroy(stream));
}

CASE(async_reuse) {
  program::begin();
  const CUstream stream = program::new_stream();
  CUdeviceptr first = 0;
  CUdeviceptr second = 0;
  OK(cuMemAllocAsync(&first, 1 << 20, stream));
  OK(cuMemFreeAsync(first, stream));
  OK(cuMemAllocAsync(&second, 1 << 20, stream));
  EQUAL(second, first);
}

CASE(pool_attributes) {
  program::begin();
  const CUstream stream = program::new_stream();
  const CUmemoryPool pool = default_pool();
  EQUAL(value_of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0u);
  CUdeviceptr small = 0;
  CUdeviceptr large = 0;
  OK(cuMemAllocAsync(&small, 1000, stream));
  EQUAL(value_of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1000u);
  EQUAL(value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), kStep);
  OK(cuMemAllocAsync(&large, 40 << 20, stream));
  EQUAL(value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 2 * kStep);
  OK(cuMemFreeAsync(large, stream));
  OK(cuStreamSynchronize(stream));
  EQUAL(value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), kStep);
  EQUAL(value_of(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 1000u + (40 << 20));
  EQUAL(value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 2 * kStep);
  OK(cuMemFreeAsync(small, stream));
  OK(cuStreamSynchronize(stream));
  EQUAL(value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0u);
  cuuint64_t zero = 0;
  cuuint64_t one = 1;
  OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
  OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &zero));
  EQUAL(value_of(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 0u);
  EQUAL(value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 0u);
  EQUAL(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &one), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &zero), CUDA_ERROR_INVALID_VALUE);
  cuuint64_t threshold = 1 << 30;
  OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  OK(cuMemAllocAsync(&large, 100 << 20, stream));
  OK(cuMemFreeAsync(large, stream));
  OK(cuStreamSynchronize(stream));
  EQUAL(value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 4 * kStep);
  EQUAL(value_of(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), threshold);
  OK(cuMemPoolTrimTo(pool, 0));
  EQUAL(value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0u);
}

CASE(created_pools) {
  program::begin();
  const CUstream stream = program::new_stream();
  const CUmemoryPool plain = new_pool(CU_MEM_HANDLE_TYPE_NONE);
  const CUmemoryPool limited = new_pool(CU_MEM_HANDLE_TYPE_NONE, kStep);
  CUdeviceptr block = 0;
  OK(cuMemAllocFromPoolAsync(&block, 5000, plain, stream));
  EQUAL(value_of(plain, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 5000u);
  EQUAL(value_of(default_pool(), CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0u);
  CUmemoryPool told = nullptr;
  OK(cuPointerGetAttribute(&told, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, block));
  HOLDS(told == plain);
  CUmemPoolPtrExportData exported;
  EQUAL(cuMemPoolExportPointer(&exported, block), CUDA_ERROR_INVALID_VALUE);
  OK(cuDeviceSetMemPool(0, plain));
  CUdeviceptr other = 0;
  OK(cuMemAllocAsync(&other, 700, stream));
  EQUAL(value_of(plain, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 5700u);
  OK(cuMemFreeAsync(other, stream));
  EQUAL(cuMemAllocFromPoolAsync(&other, 2 * kStep, limited, stream), CUDA_ERROR_OUT_OF_MEMORY);
  EQUAL(value_of(limited, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0u);
  OK(cuMemPoolDestroy(plain));
  OK(cuMemFreeAsync(block, stream));  // a block may outlive its pool
  OK(cuMemAllocAsync(&other, 700, stream));
  EQUAL(value_of(default_pool(), CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 700u);
}

CASE(exportable_pool) {
  program::begin();
  const CUstream stream = program::new_stream();
  const CUmemoryPool shared = new_pool(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  CUdeviceptr block = 0;
  OK(cuMemAllocFromPoolAsync(&block, 5000, shared, stream));
  HOLDS(value_of(shared, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) >= 5000u);  // the driver's own count
  OK(cuMemFreeAsync(block, stream));
}

CASE(capture) {
  program::begin();
  const CUstream stream = program::new_stream();
  const CUstream other = program::new_stream();
  CUdeviceptr before = 0;
  CUdeviceptr inside = 0;
  OK(cuMemAlloc(&before, 1 << 20));
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUdeviceptr graph_block = 0;
  OK(cuMemAllocAsync(&graph_block, 4096, stream));  // belongs to the graph
  OK(cuMemFreeAsync(graph_block, stream));
  OK(cuMemAlloc(&inside, 8 << 20));
  OK(cuMemFree(before));
  CUdeviceptr elsewhere = 0;
  OK(cuMemAllocAsync(&elsewhere, 4096, other));
  OK(cuMemFreeAsync(elsewhere, other));
  OK(cuMemFree(inside));
  OK(cuMemAlloc(&inside, 8 << 20));
  CUgraph graph = nullptr;
  OK(cuStreamEndCapture(stream, &graph));
  HOLDS(graph != nullptr);
  OK(cuGraphDestroy(graph));
  OK(cuMemFree(inside));
  OK(cuMemAlloc(&before, 1 << 20));
  OK(cuMemFree(before));
}

CASE(per_thread_streams) {
  const CUcontext context = program::begin();
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([context] {
      OK(cuCtxSetCurrent(context));
      for (int i = 0; i < 50; ++i) {
        CUdeviceptr block = 0;
        OK(cuMemAllocAsync(&block, 10000, CU_STREAM_PER_THREAD));
        OK(cuMemFreeAsync(block, CU_STREAM_PER_THREAD));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Run with pool.direct_above, so that the driver serves: it gives what one thread frees to another at once.
CASE(driver_served_threads) {
  const CUcontext context = program::begin();
  const CUmemoryPool pools[] = {default_pool(), new_pool(CU_MEM_HANDLE_TYPE_NONE),
                                new_pool(CU_MEM_HANDLE_TYPE_NONE, 4 * kStep)};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      OK(cuCtxSetCurrent(context));
      const CUstream stream = program::new_stream();
      CUdeviceptr blocks[16] = {};
      for (unsigned i = 0; i < 3000; ++i) {
        CUdeviceptr& block = blocks[(i * 5 + t) % 16];
        if (block) OK(i % 4 == 0 ? cuMemFree(block) : cuMemFreeAsync(block, stream));
        OK(cuMemAllocFromPoolAsync(&block, 4096 + (i * 7 + t) % 13 * 4096, pools[(i + t) % 3], stream));
      }
      for (const CUdeviceptr block : blocks) OK(cuMemFreeAsync(block, stream));
      OK(cuStreamSynchronize(stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const CUmemoryPool pool : pools) EQUAL(value_of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0u);
}
