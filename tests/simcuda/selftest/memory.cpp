// Plain memory, pointers and arrays: the measured facts, one by one.
#include <thread>
#include <vector>

#include "tests/simcuda/selftest/helpers.h"

using namespace gpupool::sim;

TEST_CASE("sizes, alignment and errors of cuMemAlloc", "[memory]") {
  Session session;
  CUdeviceptr p = 0;
  CHECK(cuMemAlloc(&p, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAlloc(nullptr, 16) == CUDA_ERROR_INVALID_VALUE);
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX - 510, SIZE_MAX - 511, size_t{1} << 63, kCardBytes + 1})
    CHECK(cuMemAlloc(&p, bytes) == CUDA_ERROR_OUT_OF_MEMORY);
  const CUdeviceptr first = allocate(1);
  const CUdeviceptr second = allocate(1);
  CHECK(second - first == 512);
  for (size_t bytes = 1; bytes < 5000; bytes += 97) CHECK(allocate(bytes) % 512 == 0);
}

TEST_CASE("errors of cuMemFree", "[memory]") {
  Session session;
  CHECK(cuMemFree(0) == CUDA_SUCCESS);
  const CUdeviceptr p = allocate(4096);
  CHECK(cuMemFree(p + 512) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFree(100) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFree(p) == CUDA_SUCCESS);
  CHECK(cuMemFree(p) == CUDA_ERROR_INVALID_VALUE);
  CHECK(allocate(4096) != allocate(4096));
}

TEST_CASE("without a current context", "[memory]") {
  Session session;
  CU(cuCtxSetCurrent(nullptr));
  CUdeviceptr p = 0;
  size_t size = 0;
  CHECK(cuMemFree(0) == CUDA_SUCCESS);
  CHECK(cuMemFree(0x700000000000) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAlloc(&p, 5) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(cuMemGetInfo(&size, &size) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(cuMemAllocAsync(&p, 512, nullptr) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(cuMemFreeAsync(0, nullptr) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(cuMemGetAddressRange(&p, &size, 0x1000) == CUDA_ERROR_INVALID_CONTEXT);
  CU(cuCtxSetCurrent(session.context));
}

TEST_CASE("the attributes of plain memory, one by one", "[memory]") {
  Session session;
  const CUdeviceptr p = allocate(4096);
  const auto number = [p](int which) {
    unsigned long long value[2] = {0, 0};
    const CUresult result = cuPointerGetAttribute(value, static_cast<CUpointer_attribute>(which), p + 64);
    return result == CUDA_SUCCESS ? value[0] : ~0ull - static_cast<unsigned>(result);
  };
  constexpr unsigned long long kRefused = ~0ull - CUDA_ERROR_INVALID_VALUE;
  const unsigned long long expected[] = {reinterpret_cast<uintptr_t>(session.context),
                                         CU_MEMORYTYPE_DEVICE,
                                         p + 64,
                                         kRefused,
                                         0,  // P2P tokens
                                         1,  // SYNC_MEMOPS
                                         number(CU_POINTER_ATTRIBUTE_BUFFER_ID),
                                         0,
                                         0,
                                         1,
                                         p,
                                         4096,
                                         1,
                                         0,
                                         1,
                                         3,
                                         0,
                                         2 * kMiB,
                                         p / (2 * kMiB) * (2 * kMiB),
                                         number(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID),
                                         1,
                                         kRefused};
  for (int which = 1; which <= 22; ++which) {
    INFO(which);
    CHECK(number(which) == expected[which - 1]);
  }
}

TEST_CASE("the card is full when its bytes are taken, and whole again after the frees", "[memory]") {
  Session session;
  CHECK(used_bytes() == 0);
  std::vector<CUdeviceptr> blocks;
  CUdeviceptr p = 0;
  while (cuMemAlloc(&p, 16 * kMiB) == CUDA_SUCCESS) blocks.push_back(p);
  CHECK(blocks.size() == 16);
  CHECK(used_bytes() == kCardBytes);
  for (CUdeviceptr block : blocks) CU(cuMemFree(block));
  CHECK(used_bytes() == 0);
}

TEST_CASE("small allocations share a piece of 2 MiB", "[memory]") {
  Session session;
  allocate(1);
  allocate(100000);
  CHECK(used_bytes() == 2 * kMiB);
}

TEST_CASE("pitch is a multiple of 512", "[memory]") {
  Session session;
  CUdeviceptr p = 0;
  size_t pitch = 0;
  CU(cuMemAllocPitch(&p, &pitch, 200, 100, 4));
  CHECK(pitch == 512);
  size_t size = 0;
  CU(cuMemGetAddressRange(nullptr, &size, p));
  CHECK(size == 512 * 100);
  CU(cuMemAllocPitch(&p, &pitch, 513, 1, 4));
  CHECK(pitch == 1024);
  CHECK(cuMemAllocPitch(&p, &pitch, SIZE_MAX / 2, 4, 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAllocPitch(&p, &pitch, size_t{1} << 40, size_t{1} << 40, 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAllocPitch(&p, nullptr, 3, 3, 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAllocPitch(nullptr, &pitch, 3, 3, 4) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a free waits for all work of the context", "[memory]") {
  Session session;
  const CUdeviceptr p = allocate(4096);
  const CUdeviceptr unrelated = allocate(4096);
  fill(make_stream(), p, 4096, 1);
  spin(make_stream(), 1000);
  CHECK(simcuda_pending() == 2);
  allocate(4096);
  CHECK(simcuda_pending() == 2);
  CU(cuMemFree(unrelated));
  CHECK(simcuda_pending() == 0);
}

TEST_CASE("a kernel that touches freed memory loses the context, and the error stays", "[memory]") {
  Session session;
  const CUstream stream = make_stream();
  const CUdeviceptr p = allocate(4096);
  CU(cuMemFree(p));
  fill(stream, p, 4096, 1);
  CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CUdeviceptr q = 0;
  CHECK(cuMemAlloc(&q, 16) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(cuMemFree(p) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
  CU(cuDevicePrimaryCtxReset(0));
  CU(cuDevicePrimaryCtxRetain(&session.context, 0));
  CHECK(cuMemAlloc(&q, 16) == CUDA_SUCCESS);
}

TEST_CASE("a reset of the context takes its plain memory back", "[memory]") {
  Session session;
  const CUdeviceptr p = allocate(8 * kMiB);
  CU(cuDevicePrimaryCtxReset(0));
  CHECK(cuMemFree(p) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CU(cuDevicePrimaryCtxRetain(&session.context, 0));
  CHECK(used_bytes() == 0);
  CHECK(cuMemFree(p) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a reset of the context leaves stream-ordered memory allocated", "[memory]") {
  Session session;
  CUdeviceptr p = 0;
  CU(cuMemAllocAsync(&p, kMiB, nullptr));
  CU(cuDevicePrimaryCtxReset(0));
  CU(cuDevicePrimaryCtxRetain(&session.context, 0));
  CHECK(used_bytes() != 0);
  CU(cuMemFreeAsync(p, nullptr));
  CU(cuCtxSynchronize());
  CHECK(used_bytes() == 0);
}

TEST_CASE("a thread without a context frees", "[memory]") {
  Session session;
  const CUdeviceptr p = allocate(4096);
  CUresult result = CUDA_ERROR_UNKNOWN;
  std::thread([&] { result = cuMemFree(p); }).join();
  CHECK(result == CUDA_SUCCESS);
  CHECK(used_bytes() == 0);
}

TEST_CASE("what the driver says about plain memory", "[memory]") {
  Session session;
  const CUdeviceptr p = allocate(5000);
  CUdeviceptr base = 0;
  size_t size = 0;
  CU(cuMemGetAddressRange(&base, &size, p + 100));
  CHECK(base == p);
  CHECK(size == 5000);
  CHECK(cuMemGetAddressRange(&base, &size, p + 4999) == CUDA_SUCCESS);
  CHECK(cuMemGetAddressRange(&base, &size, p + 5000) == CUDA_ERROR_NOT_FOUND);
  CHECK(base == 0);
  CHECK(size == 0);
  CUcontext context = nullptr;
  CU(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, p));
  CHECK(context == session.context);
  int flag = 0;
  CU(cuPointerGetAttribute(&flag, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p));
  CHECK(flag == 1);
  CU(cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 7));
  CHECK(base == p);
  unsigned on = 1;
  CHECK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p) == CUDA_SUCCESS);
  CUmemGenericAllocationHandle handle = 0;
  CHECK(cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(p)) == CUDA_ERROR_INVALID_VALUE);
  int local = 0;
  CHECK(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, reinterpret_cast<CUdeviceptr>(&local)) ==
        CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("every allocation has a new buffer id", "[memory]") {
  Session session;
  unsigned long long first = 0;
  unsigned long long second = 0;
  const CUdeviceptr p = allocate(4096);
  CU(cuPointerGetAttribute(&first, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
  CU(cuMemFree(p));
  const CUdeviceptr q = allocate(4096);
  REQUIRE(q == p);
  CU(cuPointerGetAttribute(&second, CU_POINTER_ATTRIBUTE_BUFFER_ID, q));
  CHECK(first != second);
}

TEST_CASE("arrays are counted", "[memory]") {
  Session session;
  CUDA_ARRAY3D_DESCRIPTOR description{};
  description.Width = 1024;
  description.Height = 1024;
  description.Format = CU_AD_FORMAT_FLOAT;
  description.NumChannels = 1;
  CUarray array = nullptr;
  CU(cuArray3DCreate(&array, &description));
  CHECK(used_bytes() == 4 * kMiB);
  CU(cuArrayDestroy(array));
  CHECK(used_bytes() == 0);
}

TEST_CASE("another card's memory needs peer access in kernels, not in copies", "[memory]") {
  Session session;
  const CUdeviceptr here = allocate(4096);
  const CUcontext second = second_card();
  CU(cuCtxSetCurrent(second));
  const CUdeviceptr there = allocate(4096);
  CU(cuMemcpyDtoD(there, here, 4096));
  CU(cuCtxSynchronize());
  SECTION("without") {
    fill(CU_STREAM_LEGACY, here, 4096, 1);
    CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  SECTION("with") {
    CU(cuCtxEnablePeerAccess(session.context, 0));
    CHECK(cuCtxEnablePeerAccess(session.context, 0) == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    fill(CU_STREAM_LEGACY, here, 4096, 1);
    CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
  }
}

TEST_CASE("pinned memory is read when the stream comes to it, pageable memory at the call", "[memory]") {
  Session session;
  const CUstream stream = make_stream();
  const CUdeviceptr p = allocate(16);
  uint32_t result = 0;
  SECTION("pinned") {
    Counter pinned;
    *pinned.cell = 1;
    CU(cuMemcpyHtoDAsync(p, pinned.cell, 4, stream));
    *pinned.cell = 2;
    CU(cuMemcpyDtoHAsync(&result, p, 4, stream));
    CHECK(result == 2);
  }
  SECTION("pageable") {
    uint32_t source = 1;
    CU(cuMemcpyHtoDAsync(p, &source, 4, stream));
    source = 2;
    CU(cuMemcpyDtoHAsync(&result, p, 4, stream));
    CHECK(result == 1);
  }
}
