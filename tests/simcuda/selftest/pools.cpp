// The driver's own memory pools.
#include <vector>

#include "tests/simcuda/selftest/helpers.h"

using namespace gpupool::sim;

namespace {

cuuint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which) {
  cuuint64_t value = 0;
  CU(cuMemPoolGetAttribute(pool, which, &value));
  return value;
}

CUmemoryPool default_pool() {
  CUmemoryPool pool = nullptr;
  CU(cuDeviceGetDefaultMemPool(&pool, 0));
  return pool;
}

CUmemoryPool make_pool() {
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemoryPool pool = nullptr;
  CU(cuMemPoolCreate(&pool, &props));
  return pool;
}

CUdeviceptr allocate_on(CUstream stream, size_t bytes) {
  CUdeviceptr p = 0;
  CU(cuMemAllocAsync(&p, bytes, stream));
  return p;
}

}  // namespace

TEST_CASE("attributes of the default pool start as 1 1 1 0 0 0 0 0", "[pools]") {
  Session session;
  std::vector<cuuint64_t> values;
  for (int which = CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES; which <= CU_MEMPOOL_ATTR_USED_MEM_HIGH; ++which)
    values.push_back(attribute(default_pool(), static_cast<CUmemPool_attribute>(which)));
  CHECK(values == std::vector<cuuint64_t>{1, 1, 1, 0, 0, 0, 0, 0});
}

TEST_CASE("a stream reuses what it freed, another stream does not before the free has run", "[pools]") {
  Session session;
  const CUstream a = make_stream();
  const CUstream b = make_stream();
  const CUdeviceptr p = allocate_on(a, 4096);
  spin(a, 10);
  CU(cuMemFreeAsync(p, a));
  CHECK(allocate_on(b, 4096) != p);
  CHECK(allocate_on(a, 4096) == p);
}

TEST_CASE("used and reserved memory, high marks and the release threshold", "[pools]") {
  Session session;
  const CUmemoryPool pool = default_pool();
  const CUstream stream = make_stream();
  cuuint64_t threshold = ~cuuint64_t{0};
  CU(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  const CUdeviceptr p = allocate_on(stream, kMiB);
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == kMiB);
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 32 * kMiB);
  CU(cuMemFreeAsync(p, stream));
  CU(cuStreamSynchronize(stream));
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == kMiB);
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 32 * kMiB);
  CHECK(used_bytes() == 32 * kMiB);
  cuuint64_t none = 0;
  CU(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &none));
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 0);
  CU(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &none));
  CU(cuStreamSynchronize(stream));
  CHECK(used_bytes() == 0);
}

TEST_CASE("trim gives back what is free and keeps the minimum", "[pools]") {
  Session session;
  const CUmemoryPool pool = make_pool();
  const CUstream stream = make_stream();
  cuuint64_t threshold = ~cuuint64_t{0};
  CU(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  CUdeviceptr blocks[3];
  for (CUdeviceptr& block : blocks) CU(cuMemAllocFromPoolAsync(&block, 32 * kMiB, pool, stream));
  for (CUdeviceptr block : blocks) CU(cuMemFreeAsync(block, stream));
  CU(cuStreamSynchronize(stream));
  CU(cuMemPoolTrimTo(pool, 40 * kMiB));
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 64 * kMiB);
  CU(cuMemPoolTrimTo(pool, 0));
  CHECK(used_bytes() == 0);
  CU(cuMemPoolDestroy(pool));
}

TEST_CASE("the current pool serves cuMemAllocAsync; a destroyed pool lives until its last block is freed", "[pools]") {
  Session session;
  const CUmemoryPool pool = make_pool();
  const CUstream stream = make_stream();
  CU(cuDeviceSetMemPool(0, pool));
  const CUdeviceptr p = allocate_on(stream, 4096);
  CUmemoryPool owner = nullptr;
  CU(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
  CHECK(owner == pool);
  CU(cuMemPoolDestroy(pool));
  CUmemoryPool current = nullptr;
  CU(cuDeviceGetMemPool(&current, 0));
  CHECK(current == default_pool());
  CHECK(cuMemPoolTrimTo(pool, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(used_bytes() > 0);
  CU(cuMemFreeAsync(p, stream));
  CU(cuStreamSynchronize(stream));
  CHECK(used_bytes() == 0);
}

TEST_CASE("cudaFree's way out of a pool, and wrong frees", "[pools]") {
  Session session;
  const CUstream stream = make_stream();
  const CUdeviceptr p = allocate_on(stream, 4096);
  CHECK(cuMemFree(p) == CUDA_SUCCESS);
  CHECK(cuMemFreeAsync(p, stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFreeAsync(p + 512, stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFreeAsync(0, stream) == CUDA_SUCCESS);
  CHECK(cuMemAllocAsync(nullptr, 16, stream) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("nothing asked of a pool is the null pointer", "[pools]") {
  Session session;
  CUdeviceptr p = 1;
  CHECK(cuMemAllocAsync(&p, 0, make_stream()) == CUDA_SUCCESS);
  CHECK(p == 0);
  CHECK(cuMemAllocAsync(&p, SIZE_MAX, make_stream()) == CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_CASE("plain memory may be freed on a stream, and goes when the stream comes to it", "[pools]") {
  Session session;
  const CUstream stream = make_stream();
  const CUdeviceptr p = allocate(8 * kMiB);
  fill(stream, p, 8 * kMiB, 1);
  CU(cuMemFreeAsync(p, stream));
  CHECK(used_bytes() == 8 * kMiB);
  CU(cuStreamSynchronize(stream));
  CHECK(used_bytes() == 0);
  CHECK(cuMemFree(p) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a pool grows in steps of 32 MiB at the end of one range and gives back free steps", "[pools]") {
  Session session;
  const CUmemoryPool pool = default_pool();
  const CUstream stream = make_stream();
  const auto reserved = [pool] { return attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) / kMiB; };
  const auto used = [pool] { return attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT); };
  const CUdeviceptr small = allocate_on(stream, 1000);
  CHECK(reserved() == 32);
  CHECK(used() == 1000);
  const CUdeviceptr large = allocate_on(stream, 40 * kMiB);
  CHECK(reserved() == 64);
  CHECK(used() == 1000 + 40 * kMiB);
  CU(cuMemFreeAsync(large, stream));
  CHECK(reserved() == 64);
  CHECK(used() == 1000);
  CU(cuStreamSynchronize(stream));
  CHECK(reserved() == 32);
  CU(cuMemFreeAsync(small, stream));
  CU(cuStreamSynchronize(stream));
  CHECK(reserved() == 0);
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) == 64 * kMiB);
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 1000 + 40 * kMiB);
  cuuint64_t value = 0;
  CU(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &value));
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) == 0);
  CHECK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value) == CUDA_ERROR_INVALID_VALUE);
  value = 1;
  CHECK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value) == CUDA_ERROR_INVALID_VALUE);
  value = cuuint64_t{1} << 30;
  CU(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
  CU(cuMemFreeAsync(allocate_on(stream, 100 * kMiB), stream));
  CU(cuStreamSynchronize(stream));
  CHECK(reserved() == 128);
  CU(cuMemPoolTrimTo(pool, 0));
  CHECK(reserved() == 0);
}

TEST_CASE("what the driver says about memory of a pool", "[pools]") {
  Session session;
  const CUdeviceptr p = allocate_on(make_stream(), kMiB);
  const auto number = [p](CUpointer_attribute which) {
    unsigned long long value = 0;
    CU(cuPointerGetAttribute(&value, which, p));
    return value;
  };
  CHECK(number(CU_POINTER_ATTRIBUTE_CONTEXT) == 0);
  CHECK(number(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE) == 0);
  CHECK(number(CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE) == 0);
  CHECK(number(CU_POINTER_ATTRIBUTE_RANGE_SIZE) == kMiB);
  CHECK(number(CU_POINTER_ATTRIBUTE_MAPPING_SIZE) == 32 * kMiB);
  CHECK(number(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE) != 0);
}

TEST_CASE("a short card makes a stream wait for another's freed block, unless the pool forbids it", "[pools]") {
  Session session;
  const CUmemoryPool pool = default_pool();
  const CUstream a = make_stream();
  const CUstream b = make_stream();
  const CUdeviceptr p = allocate_on(a, 200 * kMiB);
  spin(a, 10);
  CU(cuMemFreeAsync(p, a));
  int allowed = GENERATE(0, 1);
  CU(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &allowed));
  CHECK(allocate_on(b, 200 * kMiB) == p);
  // Allowed: the device waits. Forbidden: the host did.
  CHECK((simcuda_pending() > 1) == (allowed == 1));
  allowed = 1;
  CU(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &allowed));
}
