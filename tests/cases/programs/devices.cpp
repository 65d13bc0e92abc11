// Several devices and contexts, peers, memory for other processes, and what must still fit beside the pool.
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "tests/preload/core/kernels.h"

namespace {

using program::Kernels;
using program::new_context;
using program::take;
using program::take_ordered;

constexpr std::uint64_t kMiB = 1 << 20;

CUdevice device_now() {
  CUdevice device = -1;
  OK(cuCtxGetDevice(&device));
  return device;
}

bool primary_is_active(CUdevice device) {
  unsigned flags = 0;
  int active = 0;
  OK(cuDevicePrimaryCtxGetState(device, &flags, &active));
  return active != 0;
}

}  // namespace

CASE(owner_by_address) {
  const CUcontext zero = program::begin(0);
  const CUdeviceptr block = take(kMiB);
  const CUcontext one = program::begin(1);
  OK(cuMemFree(block));
  EQUAL(device_now(), 1);
  EQUAL(cuMemFree(block), CUDA_ERROR_INVALID_VALUE);
  std::vector<CUdeviceptr> grown;
  for (int i = 0; i < 20; ++i) grown.push_back(take(64 * kMiB));
  EQUAL(device_now(), 1);
  OK(cuCtxSetCurrent(zero));
  for (CUdeviceptr each : grown) OK(cuMemFree(each));
  EQUAL(device_now(), 0);
  const CUdeviceptr again = take(kMiB);
  CUdevice owner = -1;
  OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, again));
  EQUAL(owner, 0);
  OK(cuCtxSetCurrent(one));
  OK(cuMemFree(again));
}

// Device 0 is never touched: nothing may make a context there.
CASE(no_stray_context) {
  program::begin(1);
  const CUdeviceptr block = take(kMiB);
  std::thread([block] {
    CUcontext context = nullptr;
    OK(cuDevicePrimaryCtxRetain(&context, 1));
    OK(cuCtxSetCurrent(context));
    OK(cuMemFree(block));
  }).join();
  HOLDS(!primary_is_active(0));
}

CASE(peers) {
  const CUcontext one = program::begin(1);
  const CUcontext zero = program::begin(0);
  Kernels kernels;  // its counter lies on device 0
  const CUdeviceptr early = take(kMiB);
  OK(cuMemsetD8(early, 1, kMiB));
  OK(cuCtxSynchronize());
  OK(cuCtxSetCurrent(one));
  OK(cuCtxEnablePeerAccess(zero, 0));  // after device 0 has a pool
  const CUstream stream = program::new_stream();
  kernels.fill(stream, early, kMiB, 9);
  kernels.check(stream, early, kMiB, 9);
  OK(cuStreamSynchronize(stream));
  OK(cuCtxSetCurrent(zero));
  const CUdeviceptr later = take(200 * kMiB);  // grown after peer access was enabled
  OK(cuCtxSetCurrent(one));
  kernels.fill(stream, later, kMiB, 10);
  kernels.check(stream, later, kMiB, 10);
  OK(cuStreamSynchronize(stream));
  OK(cuCtxSetCurrent(zero));
  EQUAL(kernels.wrong_bytes(), 0u);
}

CASE(peers_before_the_pool) {
  const CUcontext zero = program::begin(0);
  const CUcontext one = program::begin(1);
  OK(cuCtxEnablePeerAccess(zero, 0));
  const CUstream stream = program::new_stream();
  OK(cuCtxSetCurrent(zero));
  const CUdeviceptr block = take(kMiB);
  OK(cuCtxSetCurrent(one));
  Kernels kernels;
  kernels.fill(stream, block, kMiB, 3);
  kernels.check(stream, block, kMiB, 3);
  OK(cuStreamSynchronize(stream));
  EQUAL(kernels.wrong_bytes(), 0u);
}

CASE(context_goes) {
  const CUcontext primary = program::begin();
  const CUdeviceptr kept = take(kMiB);
  OK(cuMemsetD8(kept, 7, kMiB));
  const CUcontext second = new_context();
  const CUdeviceptr gone = take(kMiB);
  CUcontext told = nullptr;
  OK(cuPointerGetAttribute(&told, CU_POINTER_ATTRIBUTE_CONTEXT, gone));
  HOLDS(told == second);
  OK(cuCtxDestroy(second));
  OK(cuCtxSetCurrent(primary));
  unsigned char byte = 0;
  OK(cuMemcpyDtoH(&byte, kept + kMiB - 1, 1));
  EQUAL(byte, 7);
  EQUAL(cuMemFree(gone), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFree(kept));
  OK(cuMemFree(take(kMiB)));
}

// Streams go with their context too: what they freed is anyone's, and nothing is asked of them any more.
CASE(context_goes_with_its_streams) {
  const CUcontext primary = program::begin();
  for (int round = 0; round < 5; ++round) {
    const CUdeviceptr first = take(kMiB);
    const CUdeviceptr second = take(kMiB);
    const CUcontext context = new_context();
    const CUstream stream = program::new_stream();
    OK(cuMemFreeAsync(first, stream));
    OK(cuMemFreeAsync(second, stream));
    OK(cuCtxDestroy(context));
    OK(cuCtxSetCurrent(primary));
    const CUstream a = program::new_stream();
    const CUstream b = program::new_stream();
    CUdeviceptr blocks[4] = {};
    for (CUdeviceptr& block : blocks) OK(cuMemAllocAsync(&block, kMiB / 2, &block - blocks < 2 ? a : b));
    for (CUdeviceptr block : blocks) OK(cuMemFreeAsync(block, b));
    OK(cuMemFree(take(2 * kMiB)));
    OK(cuStreamDestroy(a));
    OK(cuStreamDestroy(b));
  }
}

// Stream-ordered memory is the device's: it outlives the context whose stream asked for it.
CASE(ordered_outlives_its_context) {
  const CUcontext primary = program::begin();
  Kernels kernels;
  for (std::uint32_t round = 0; round < 5; ++round) {
    const CUcontext context = new_context();
    const CUstream stream = program::new_stream();
    CUdeviceptr kept = 0;
    CUdeviceptr freed = 0;
    OK(cuMemAllocAsync(&kept, kMiB, stream));
    OK(cuMemAllocAsync(&freed, kMiB, stream));
    kernels.fill(stream, kept, kMiB, round);
    kernels.fill(stream, freed, kMiB, round);
    OK(cuMemFreeAsync(freed, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuCtxDestroy(context));
    OK(cuCtxSetCurrent(primary));
    const CUstream other = program::new_stream();
    kernels.check(other, kept, kMiB, round);
    CUdeviceptr next = 0;
    OK(cuMemAllocAsync(&next, kMiB, other));
    kernels.fill(other, next, kMiB, 100 + round);
    kernels.check(other, kept, kMiB, round);
    kernels.check(other, next, kMiB, 100 + round);
    OK(cuMemFreeAsync(next, other));
    OK(cuMemFreeAsync(kept, other));
    OK(cuStreamDestroy(other));
  }
  EQUAL(kernels.wrong_bytes(), 0u);
}

namespace {

// Taken in a further context, on its default stream or one of its own, and freed in the primary one when that is gone.
void outlives(CUcontext primary, bool own_stream) {
  CUmemoryPool pool = nullptr;
  CUmemoryPool told = nullptr;
  CUcontext owner = nullptr;
  unsigned char byte = 0;
  cuuint64_t used = 0;
  const CUcontext context = new_context();
  OK(cuDeviceGetDefaultMemPool(&pool, 0));
  const CUdeviceptr kept = take_ordered(kMiB, own_stream ? program::new_stream() : nullptr);
  const CUdeviceptr plain = take(kMiB);
  OK(cuMemsetD8(kept, 7, kMiB));
  OK(cuPointerGetAttribute(&told, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, kept));
  OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, kept));
  HOLDS(told == pool && owner == nullptr);
  OK(cuCtxSynchronize());
  OK(cuCtxDestroy(context));
  if (!primary) primary = program::begin();
  OK(cuCtxSetCurrent(primary));
  EQUAL(cuMemFree(plain), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemcpyDtoH(&byte, kept + kMiB - 1, 1));
  EQUAL(byte, 7);
  OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  EQUAL(used, kMiB);
  OK(cuMemFreeAsync(kept, nullptr));
  OK(cuMemFree(take(kMiB)));
}

}  // namespace

// The primary context exists and has never asked for memory.
CASE(ordered_outlives_before_the_primary_has_any) {
  for (const bool own_stream : {false, true}) {
    const CUcontext primary = program::begin();
    outlives(primary, own_stream);
    OK(cuDevicePrimaryCtxReset(0));
  }
}

// A reset of the device leaves stream-ordered memory allocated natively, until it is freed.
CASE(late_frees_after_a_reset) {
  program::begin();
  CUmemoryPool pool = nullptr;
  cuuint64_t used = 0;
  OK(cuDeviceGetDefaultMemPool(&pool, 0));
  const CUdeviceptr plain = take(kMiB);
  const CUdeviceptr first = take_ordered(kMiB, nullptr);
  const CUdeviceptr second = take_ordered(kMiB, program::new_stream());
  OK(cuDevicePrimaryCtxReset(0));
  program::begin();
  OK(cuMemFree(take(kMiB)));
  OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  EQUAL(used, 2 * kMiB);
  EQUAL(cuMemFree(plain), CUDA_ERROR_INVALID_VALUE);
  unsigned type = 0;
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  EQUAL(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, plain), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemGetAddressRange(&base, &bytes, plain), CUDA_ERROR_NOT_FOUND);
  OK(cuMemFree(first));
  EQUAL(cuMemFree(first), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFreeAsync(second, nullptr));
  EQUAL(cuMemFreeAsync(second, nullptr), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  EQUAL(used, 0u);
}

// A thread without a context frees what others made.
CASE(free_without_a_context) {
  program::begin();
  const CUdeviceptr plain = take(kMiB);
  const CUdeviceptr ordered = take_ordered(kMiB, nullptr);
  OK(cuCtxSynchronize());
  std::thread([&] {
    OK(cuMemFree(plain));
    OK(cuMemFree(ordered));
    EQUAL(cuMemFree(plain), CUDA_ERROR_INVALID_VALUE);
  }).join();
  EQUAL(cuMemFree(plain), CUDA_ERROR_INVALID_VALUE);
}

// There is no primary context, and asking for such memory makes none.
CASE(ordered_without_a_primary) {
  OK(cuInit(0));
  unsigned flags = 0;
  int active = 1;
  const CUcontext context = new_context();
  const CUstream stream = program::new_stream();
  OK(cuMemFreeAsync(take_ordered(kMiB, stream), stream));
  OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EQUAL(active, 0);
  OK(cuCtxDestroy(context));
  outlives(nullptr, true);
}

// Whatever a block's attribute says of legacy IPC is what happens.
CASE(legacy_handles) {
  program::begin();
  CUipcMemHandle handle;
  for (int i = 0; i < 10; ++i) {
    const CUdeviceptr block = take(4 * kMiB);
    unsigned capable = 2;
    OK(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, block));
    const CUresult result = cuIpcGetMemHandle(&handle, block);
    if (result != CUDA_SUCCESS) EQUAL(result, CUDA_ERROR_INVALID_VALUE);
    EQUAL(result == CUDA_SUCCESS, capable == 1);
  }
  CUdeviceptr ordered = 0;
  const CUstream stream = program::new_stream();
  OK(cuMemAllocAsync(&ordered, kMiB, stream));
  EQUAL(cuIpcGetMemHandle(&handle, ordered), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFreeAsync(ordered, stream));
}

// A block that another process may have mapped is never handed out again.
CASE(exported_stays) {
  program::begin();
  const CUdeviceptr block = take(4 * kMiB);
  CUipcMemHandle handle;
  int file = -1;
  if (cuIpcGetMemHandle(&handle, block) != CUDA_SUCCESS)
    OK(cuMemGetHandleForAddressRange(&file, block / (2 * kMiB) * (2 * kMiB), 4 * kMiB,
                                     CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
  OK(cuMemFree(block));
  for (int i = 0; i < 20; ++i) {
    const CUdeviceptr next = take(4 * kMiB);
    HOLDS(next + 4 * kMiB <= block || next >= block + 4 * kMiB);
  }
  if (file >= 0) close(file);
}

// Memory that another device was given tokens for is never handed out again.
CASE(registered_stays) {
  program::begin();
  for (const bool among_others : {false, true}) {
    const CUdeviceptr block = take(4 * kMiB);
    CUDA_POINTER_ATTRIBUTE_P2P_TOKENS tokens{};
    CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_P2P_TOKENS;
    void* answer = &tokens;
    OK(among_others ? cuPointerGetAttributes(1, &attribute, &answer, block)
                    : cuPointerGetAttribute(&tokens, attribute, block));
    OK(cuMemFree(block));
    for (int i = 0; i < 20; ++i) {
      const CUdeviceptr next = take(4 * kMiB);
      HOLDS(next + 4 * kMiB <= block || next >= block + 4 * kMiB);
    }
  }
}

// Nor what a descriptor was given out for, also where it began in a neighbour.
CASE(described_stays) {
  program::begin();
  const CUdeviceptr block = take(4 * kMiB + 512);
  const CUdeviceptr neighbour = take(4 * kMiB);
  constexpr std::size_t kPage = 4096;
  int file = -1;
  const CUdeviceptr first = neighbour / kPage * kPage;
  const std::size_t bytes = (neighbour + 4 * kMiB - first) / kPage * kPage;
  OK(cuMemGetHandleForAddressRange(&file, first, bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
  OK(cuMemFree(neighbour));
  if (first < neighbour) OK(cuMemFree(block));
  for (int i = 0; i < 20; ++i) {
    const CUdeviceptr next = take(4 * kMiB);
    HOLDS(next + 4 * kMiB <= neighbour || next >= neighbour + 4 * kMiB);
    if (first < neighbour) HOLDS(next + 4 * kMiB <= block || next >= block + 4 * kMiB + 512);
  }
  close(file);
}

// Again and again the card has little free, because the first pool has it.
CASE(contexts_come_and_go) {
  const CUcontext primary = program::begin();
  OK(cuMemFree(take(kMiB)));
  for (int i = 0; i < 5; ++i) {
    const CUcontext context = program::new_context();
    OK(cuMemFree(take(kMiB)));
    OK(cuCtxDestroy(context));
    OK(cuCtxSetCurrent(primary));
  }
}

// All that the pool gets; the driver serves the rest. Some of the card is somebody else's by then.
CASE(takes_everything) {
  program::begin();
  CUdeviceptr block = take(kMiB);
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemGenericAllocationHandle handle = 0;
  OK(cuMemCreate(&handle, 1024 * kMiB, &prop, 0));
  while (cuMemAlloc(&block, 64 * kMiB) == CUDA_SUCCESS) continue;
}

// What libraries take beside the pool: pinned memory, an array, a module, a memory pool of their own.
CASE(beside_the_pool) {
  program::begin();
  std::vector<CUdeviceptr> blocks;
  for (int i = 0; i < 50; ++i) blocks.push_back(take(64 * kMiB));  // of 4 GiB, whose default headroom is 512 MiB
  void* pinned = nullptr;
  OK(cuMemAllocHost(&pinned, 16 * kMiB));
  CUDA_ARRAY3D_DESCRIPTOR description{};
  description.Width = 4096;
  description.Height = 4096;
  description.Format = CU_AD_FORMAT_FLOAT;
  description.NumChannels = 4;  // 256 MiB
  CUarray array = nullptr;
  OK(cuArray3DCreate(&array, &description));
  CUmodule module = nullptr;
  OK(cuModuleLoadData(&module, "kernels"));
  OK(cuArrayDestroy(array));
  OK(cuMemFreeHost(pinned));
  for (CUdeviceptr block : blocks) OK(cuMemFree(block));
}

CASE(visible_devices) {
  int count = -1;
  const CUresult result = cuInit(0);
  std::printf("init %d\n", result);
  OK(cuDeviceGetCount(&count));
  std::printf("devices %d\n", count);
  program::begin();
  OK(cuMemFree(take(4096)));
}
