// Virtual memory management: the measured facts, one by one.
#include <unistd.h>

#include "tests/simcuda/selftest/helpers.h"

using namespace gpupool::sim;

namespace {

CUdeviceptr reserve(size_t bytes) {
  CUdeviceptr at = 0;
  CU(cuMemAddressReserve(&at, bytes, 0, 0, 0));
  return at;
}

CUmemGenericAllocationHandle create(size_t bytes) {
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp prop = device_memory();
  CU(cuMemCreate(&handle, bytes, &prop, 0));
  return handle;
}

}  // namespace

TEST_CASE("handles count against the card, addresses do not", "[vmm]") {
  Session session;
  const CUdeviceptr at = reserve(uint64_t{1} << 40);
  CHECK(used_bytes() == 0);
  const auto handle = create(64 * kMiB);
  CHECK(used_bytes() == 64 * kMiB);
  const CUmemAllocationProp prop = device_memory();
  CUmemGenericAllocationHandle too_much = 0;
  CHECK(cuMemCreate(&too_much, kCardBytes, &prop, 0) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cuMemCreate(&too_much, kMiB, &prop, 0) == CUDA_ERROR_INVALID_VALUE);
  CU(cuMemRelease(handle));
  CHECK(used_bytes() == 0);
  CU(cuMemAddressFree(at, uint64_t{1} << 40));
}

TEST_CASE("a mapping covers its handle whole, an unmap covers mappings whole", "[vmm]") {
  Session session;
  const CUdeviceptr at = reserve(16 * kMiB);
  const auto handle = create(4 * kMiB);
  CHECK(cuMemMap(at, 2 * kMiB, 0, handle, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuMemMap(at, 2 * kMiB, 2 * kMiB, handle, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuMemMap(at + 16 * kMiB, 4 * kMiB, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);
  CU(cuMemMap(at, 4 * kMiB, 0, handle, 0));
  CHECK(cuMemMap(at + 2 * kMiB, 4 * kMiB, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemUnmap(at, 2 * kMiB) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemUnmap(at + 2 * kMiB, 2 * kMiB) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAddressFree(at, 16 * kMiB) == CUDA_ERROR_INVALID_VALUE);
  const auto next = create(2 * kMiB);
  CU(cuMemMap(at + 4 * kMiB, 2 * kMiB, 0, next, 0));
  CHECK(cuMemUnmap(at, 6 * kMiB) == CUDA_SUCCESS);
  CU(cuMemRelease(handle));
  CU(cuMemRelease(next));
  CU(cuMemAddressFree(at, 16 * kMiB));
}

TEST_CASE("memory stays while it is mapped or named", "[vmm]") {
  Session session;
  const CUdeviceptr at = reserve(2 * kMiB);
  const auto handle = create(2 * kMiB);
  CU(cuMemMap(at, 2 * kMiB, 0, handle, 0));
  CUmemGenericAllocationHandle again = 0;
  CU(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(at + 100)));
  CHECK(again == handle);
  CU(cuMemRelease(handle));
  CU(cuMemRelease(again));
  CHECK(used_bytes() == 2 * kMiB);
  CU(cuMemUnmap(at, 2 * kMiB));
  CHECK(used_bytes() == 0);
  CHECK(cuMemRelease(handle) == CUDA_ERROR_INVALID_VALUE);
  CU(cuMemAddressFree(at, 2 * kMiB));
}

TEST_CASE("a handle keeps its bytes when it moves", "[vmm]") {
  Session session;
  Counter wrong;
  const CUdeviceptr at = reserve(4 * kMiB);
  const auto handle = create(2 * kMiB);
  CU(cuMemMap(at, 2 * kMiB, 0, handle, 0));
  CU(open_to(0, at, 2 * kMiB));
  fill(CU_STREAM_LEGACY, at, 2 * kMiB, 5);
  CU(cuCtxSynchronize());
  CU(cuMemUnmap(at, 2 * kMiB));
  CU(cuMemMap(at + 2 * kMiB, 2 * kMiB, 0, handle, 0));
  CU(open_to(0, at + 2 * kMiB, 2 * kMiB));
  check(CU_STREAM_LEGACY, at + 2 * kMiB, 2 * kMiB, 5, wrong.address());
  CU(cuCtxSynchronize());
  CHECK(wrong.value() == 0);
  CU(cuMemUnmap(at + 2 * kMiB, 2 * kMiB));
  CU(cuMemRelease(handle));
  CU(cuMemAddressFree(at, 4 * kMiB));
}

TEST_CASE("nothing here waits: memory unmapped under a queued kernel is an illegal address", "[vmm]") {
  Session session;
  {
    Mapped memory(2 * kMiB);
    fill(make_stream(), memory.at, 4096, 1);
    CHECK(simcuda_pending() == 1);
  }
  CHECK(simcuda_pending() == 1);
  CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("mapped memory is closed until access is given, card by card", "[vmm]") {
  Session session;
  Mapped memory(2 * kMiB);
  CU(cuCtxSetCurrent(second_card()));
  SECTION("not given") {
    fill(CU_STREAM_LEGACY, memory.at, 16, 1);
    CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  SECTION("peer access does not reach it") {
    CU(cuCtxEnablePeerAccess(session.context, 0));
    fill(CU_STREAM_LEGACY, memory.at, 16, 1);
    CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  SECTION("given") {
    CU(open_to(1, memory.at, memory.size));
    fill(CU_STREAM_LEGACY, memory.at, 16, 1);
    CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
  }
}

TEST_CASE("a reset of the context does not return mapped memory", "[vmm]") {
  Session session;
  Mapped memory(8 * kMiB);
  CU(cuDevicePrimaryCtxReset(0));
  CU(cuDevicePrimaryCtxRetain(&session.context, 0));
  CHECK(used_bytes() == 8 * kMiB);
  fill(CU_STREAM_LEGACY, memory.at, 4096, 1);
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
}

TEST_CASE("what the driver says about mapped memory", "[vmm]") {
  Session session;
  const CUdeviceptr at = reserve(8 * kMiB);
  const auto first = create(2 * kMiB);
  const auto second = create(2 * kMiB);
  CU(cuMemMap(at, 2 * kMiB, 0, first, 0));
  CU(cuMemMap(at + 2 * kMiB, 2 * kMiB, 0, second, 0));
  CU(open_to(0, at, 4 * kMiB));
  CUdeviceptr base = 0;
  size_t size = 0;
  CU(cuMemGetAddressRange(&base, &size, at + 2 * kMiB + 5));
  CHECK(base == at + 2 * kMiB);
  CHECK(size == 2 * kMiB);
  CU(cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at + 2 * kMiB + 5));
  CU(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, at + 2 * kMiB + 5));
  CHECK(base == at);
  CHECK(size == 8 * kMiB);
  CUcontext context = session.context;
  CU(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, at));
  CHECK(context == nullptr);
  int flag = 1;
  CU(cuPointerGetAttribute(&flag, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, at));
  CHECK(flag == 0);
  unsigned on = 1;
  CHECK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, at) == CUDA_ERROR_NOT_SUPPORTED);
  CUipcMemHandle ipc;
  CHECK(cuIpcGetMemHandle(&ipc, at) == CUDA_ERROR_INVALID_VALUE);
  CU(cuMemUnmap(at, 4 * kMiB));
  CU(cuMemRelease(first));
  CU(cuMemRelease(second));
  CU(cuMemAddressFree(at, 8 * kMiB));
}

TEST_CASE("a shareable handle comes back through its descriptor", "[vmm]") {
  Session session;
  CUmemAllocationProp prop = device_memory();
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemGenericAllocationHandle handle = 0;
  CU(cuMemCreate(&handle, 2 * kMiB, &prop, 0));
  int file = -1;
  CU(cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  CUmemGenericAllocationHandle imported = 0;
  CU(cuMemImportFromShareableHandle(&imported, reinterpret_cast<void*>(static_cast<intptr_t>(file)),
                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  close(file);
  CU(cuMemRelease(handle));
  CHECK(used_bytes() == 2 * kMiB);
  CU(cuMemRelease(imported));
  CHECK(used_bytes() == 0);
  const auto plain = create(2 * kMiB);
  CHECK(cuMemExportToShareableHandle(&file, plain, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) ==
        CUDA_ERROR_INVALID_VALUE);
  CU(cuMemRelease(plain));
}

TEST_CASE("memory of the host lies beside the card's, counts nowhere, and says what it is", "[vmm]") {
  Session session;
  const CUdeviceptr at = reserve(2 * kMiB);
  for (const CUmemLocationType type : {CU_MEM_LOCATION_TYPE_HOST, CU_MEM_LOCATION_TYPE_HOST_NUMA}) {
    CUmemAllocationProp prop = device_memory();
    prop.location.type = type;
    CUmemGenericAllocationHandle handle = 0;
    CU(cuMemCreate(&handle, 2 * kMiB, &prop, 0));
    CHECK(used_bytes() == 0);
    CU(cuMemMap(at, 2 * kMiB, 0, handle, 0));
    CUmemAccessDesc access{};
    access.location = device_memory().location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CU(cuMemSetAccess(at, 2 * kMiB, &access, 1));
    CU(cuMemsetD32(at, 7, 16));
    unsigned word = 0;
    CU(cuMemcpyDtoH(&word, at + 60, sizeof word));
    CHECK(word == 7);
    unsigned kind = 0;
    CU(cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at));
    CHECK(kind == CU_MEMORYTYPE_HOST);
    CU(cuMemUnmap(at, 2 * kMiB));
    CU(cuMemRelease(handle));
  }
  CU(cuMemAddressFree(at, 2 * kMiB));
}
