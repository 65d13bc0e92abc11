// One call of every hooked function that no other program here makes: the answer is the driver's.
#include <cstdlib>
#include <cstring>

#include "tests/preload/core/program.h"

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

CUDA_ARRAY3D_DESCRIPTOR array_description() {
  CUDA_ARRAY3D_DESCRIPTOR description{};
  description.Width = 64;
  description.Height = 64;
  description.Format = CU_AD_FORMAT_FLOAT;
  description.NumChannels = 1;
  return description;
}

}  // namespace

CASE(arrays_and_host_memory) {
  program::begin();
  CUDA_ARRAY_DESCRIPTOR flat{};
  flat.Width = 64;
  flat.Height = 64;
  flat.Format = CU_AD_FORMAT_UNSIGNED_INT8;
  flat.NumChannels = 1;
  const CUDA_ARRAY3D_DESCRIPTOR volume = array_description();
  CUarray array = nullptr;
  OK(cuArrayCreate(&array, &flat));
  OK(cuArrayDestroy(array));
  OK(cuArray3DCreate(&array, &volume));
  OK(cuArrayDestroy(array));
  CUmipmappedArray levels = nullptr;
  OK(cuMipmappedArrayCreate(&levels, &volume, 4));
  OK(cuMipmappedArrayDestroy(levels));
  EQUAL(cuArrayCreate(&array, nullptr), CUDA_ERROR_INVALID_VALUE);
  void* pinned = nullptr;
  OK(cuMemHostAlloc(&pinned, kMiB, 0));
  OK(cuMemFreeHost(pinned));
  OK(cuMemAllocHost(&pinned, kMiB));
  OK(cuMemFreeHost(pinned));
  CUdeviceptr managed = 0;
  OK(cuMemAllocManaged(&managed, kMiB, CU_MEM_ATTACH_GLOBAL));
  OK(cuMemFree(managed));
}

CASE(modules_and_limits) {
  program::begin();
  CUmodule module = nullptr;
  OK(cuModuleLoadData(&module, "kernels"));
  OK(cuModuleLoadDataEx(&module, "kernels", 0, nullptr, nullptr));
  OK(cuModuleLoadFatBinary(&module, "kernels"));
  OK(cuModuleLoad(&module, "/dev/null"));
  CUlibrary library = nullptr;
  OK(cuLibraryLoadData(&library, "kernels", nullptr, nullptr, 0, nullptr, nullptr, 0));
  OK(cuLibraryLoadFromFile(&library, "/dev/null", nullptr, nullptr, 0, nullptr, nullptr, 0));
  OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
  CUstream stream = nullptr;
  OK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0));
  OK(cuStreamDestroy(stream));
}

CASE(graphs) {
  program::begin();
  const CUstream stream = program::new_stream();
  CUgraph graph = nullptr;
  OK(cuGraphCreate(&graph, 0));
  OK(cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUdeviceptr block = 0;
  OK(cuMemAllocAsync(&block, 4096, stream));
  OK(cuMemFreeAsync(block, stream));
  CUgraph same = nullptr;
  OK(cuStreamEndCapture(stream, &same));
  HOLDS(same == graph);
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  CUgraphExec exec = nullptr;
  OK(cuGraphInstantiateWithParams(&exec, graph, &params));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
}

// A graph gets the memory of its allocation nodes when it is launched, or uploaded; the driver is made to be out of
// memory as often as takes to see that the pool gave some back in between.
CASE(graph_needs_room) {
  program::begin();
  OK(cuMemFree(program::take(kMiB)));
  const CUstream stream = program::new_stream();
  CUgraph graph = nullptr;
  OK(cuGraphCreate(&graph, 0));
  CUgraphExec exec = nullptr;
  OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  OK(cuGraphUpload(exec, stream));
  OK(cuMemFree(program::take(kMiB)));
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
}

// The pool questions by location, and access of another device to a pool's memory.
CASE(pools_by_location) {
  program::begin(1);
  program::begin(0);
  CUmemoryPool pool = nullptr;
  CUmemoryPool told = nullptr;
  OK(cuDeviceGetDefaultMemPool(&pool, 0));
#if CUDA_VERSION >= 13000
  CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  OK(cuMemGetDefaultMemPool(&told, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
  HOLDS(told == pool);
  OK(cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, pool));
  OK(cuMemGetMemPool(&told, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
  HOLDS(told == pool);
#endif
  OK(cuDeviceGetMemPool(&told, 0));
  HOLDS(told == pool);
  CUmemAccessDesc both{};
  both.location = {CU_MEM_LOCATION_TYPE_DEVICE, {1}};
  both.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  const CUstream stream = program::new_stream();
  CUdeviceptr block = 0;
  OK(cuMemAllocAsync(&block, kMiB, stream));
  OK(cuMemPoolSetAccess(pool, &both, 1));
  CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  OK(cuMemPoolGetAccess(&flags, pool, &both.location));
  EQUAL(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  OK(cuMemFreeAsync(block, stream));
}

// Calls for reserved addresses are refused for a block, and its SYNC_MEMOPS as its memory has it.
CASE(not_for_blocks) {
  program::begin();
  CUdeviceptr block = 0;
  OK(cuMemAlloc(&block, 4 * kMiB));
  CUmemAccessDesc none{};
  none.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  none.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  EQUAL(cuMemSetAccess(block, 2 * kMiB, &none, 1), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemUnmap(block, 2 * kMiB), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemAddressFree(block, 4 * kMiB), CUDA_ERROR_INVALID_VALUE);
  unsigned on = 1;
  const CUresult result = cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, block);
  HOLDS(result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_SUPPORTED);  // see docs/compatibility.md
  OK(cuMemFree(block));
  EQUAL(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, block), CUDA_ERROR_INVALID_VALUE);
}

CASE(peers_go) {
  const CUcontext zero = program::begin(0);
  CUdeviceptr block = 0;
  OK(cuMemAlloc(&block, kMiB));
  program::begin(1);
  OK(cuCtxEnablePeerAccess(zero, 0));
  EQUAL(cuCtxEnablePeerAccess(zero, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  OK(cuCtxDisablePeerAccess(zero));
  EQUAL(cuCtxDisablePeerAccess(zero), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  OK(cuMemFree(block));
}

CASE(opened_handles) {
  program::begin();
  CUdeviceptr mapped = 0;
  CUipcMemHandle nothing;
  std::memset(&nothing, 0, sizeof nothing);
  EQUAL(cuIpcOpenMemHandle(&mapped, nothing, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuIpcCloseMemHandle(0x1000), CUDA_ERROR_INVALID_VALUE);
}

// As NCCL and UCX register a buffer: what is it, whose, how can another process or a network card reach it? Keyed by
// the buffer's id, which says when an address has become another buffer.
CASE(registration_caches) {
  program::begin();
  unsigned long long last_id = 0;
  for (int round = 0; round < 5; ++round) {
    CUdeviceptr block = 0;
    OK(cuMemAlloc(&block, 4 * kMiB));
    for (const CUdeviceptr inside : {block, block + 1000, block + 4 * kMiB - 1}) {
      CUdeviceptr base = 0;
      std::size_t bytes = 0;
      OK(cuMemGetAddressRange(&base, &bytes, inside));
      EQUAL(base, block);
      EQUAL(bytes, 4 * kMiB);
      CUmemGenericAllocationHandle handle = 0;
      EQUAL(cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(inside)), CUDA_ERROR_INVALID_VALUE);
      unsigned long long flags = 0;
      const CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, {0}};
      EQUAL(cuMemGetAccess(&flags, &here, inside), CUDA_ERROR_INVALID_VALUE);
      EQUAL(program::attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, inside), 0u);
    }
    const auto id = program::attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, block);
    EQUAL(program::attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, block + kMiB), id);
    HOLDS(id != last_id);
    last_id = id;
    const bool capable = program::attribute<unsigned>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, block) == 1;
    CUipcMemHandle exported;
    EQUAL(cuIpcGetMemHandle(&exported, block) == CUDA_SUCCESS, capable);
    OK(cuMemFree(block));
    unsigned long long none = 0;
    EQUAL(cuPointerGetAttribute(&none, CU_POINTER_ATTRIBUTE_BUFFER_ID, block), CUDA_ERROR_INVALID_VALUE);
  }
}

// Access to a memory pool, taken from one device again; the pool's own device cannot lose it.
CASE(access_withdrawn) {
  program::begin(1);
  program::begin(0);
  CUmemoryPool pool = nullptr;
  OK(cuDeviceGetDefaultMemPool(&pool, 0));
  const CUstream stream = program::new_stream();
  CUdeviceptr block = 0;
  OK(cuMemAllocAsync(&block, kMiB, stream));
  CUmemAccessDesc access{};
  const auto set = [&](int device, CUmemAccess_flags flags) {
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
    access.flags = flags;
    return cuMemPoolSetAccess(pool, &access, 1);
  };
  const auto told = [&] {
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    OK(cuMemPoolGetAccess(&flags, pool, &access.location));
    return flags;
  };
  EQUAL(set(0, CU_MEM_ACCESS_FLAGS_PROT_NONE), CUDA_ERROR_INVALID_DEVICE);
  EQUAL(told(), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  EQUAL(set(0, CU_MEM_ACCESS_FLAGS_PROT_READ), CUDA_ERROR_NOT_SUPPORTED);
  for (int round = 0; round < 3; ++round) {
    OK(set(1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    EQUAL(told(), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    OK(set(1, CU_MEM_ACCESS_FLAGS_PROT_NONE));
    EQUAL(told(), CU_MEM_ACCESS_FLAGS_PROT_NONE);
    OK(cuMemsetD8Async(block, 1, kMiB, stream));
    OK(cuStreamSynchronize(stream));
  }
  OK(cuMemFreeAsync(block, stream));
}

// Freed by the other kind of free: the pool does not count it any more. (The driver does, see docs/compatibility.md.)
CASE(used_after_a_plain_free) {
  program::begin();
  CUmemoryPool pool = nullptr;
  cuuint64_t used = 1;
  OK(cuDeviceGetDefaultMemPool(&pool, 0));
  CUdeviceptr block = 0;
  OK(cuMemAllocAsync(&block, kMiB, nullptr));
  OK(cuCtxSynchronize());
  OK(cuMemFree(block));
  OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  EQUAL(used, 0u);
}

CASE(sync_memops) {
  program::begin();
  CUdeviceptr block = 0;
  unsigned on = 1;
  OK(cuMemAlloc(&block, kMiB));
  const bool slabs = std::getenv("TEST_SLABS") != nullptr;
  EQUAL(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, block),
        slabs ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED);
  EQUAL(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, block),
        slabs ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED);
  OK(cuMemFree(block));
}
