// Managed and pinned host memory: ordinary pages that every device reaches. Pinned matters for time: copies to and from
// it are really asynchronous.
#include <sys/mman.h>

#include "tests/simcuda/call.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/memory.h"
#include "tests/simcuda/scheduler.h"

namespace gpupool::sim {
namespace {

constexpr uint64_t kPage = 4096;

CUresult map_pages(Context& context, uint64_t bytes, MemoryKind kind, unsigned flags, CUdeviceptr& out) {
  if (bytes > uint64_t{1} << 46) return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t size = (bytes + kPage - 1) / kPage * kPage;
  void* pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  out = reinterpret_cast<CUdeviceptr>(pages);
  add_allocation(out, bytes, kind, &context, context.device->ordinal).flags = flags;
  state().regions[out] = Region{size, all_devices()};
  return CUDA_SUCCESS;
}

CUresult allocate(void** out, size_t bytes, MemoryKind kind, unsigned flags) {
  Context* context = nullptr;
  if (const CUresult e = current_context(context)) return e;
  if (!out || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = refuse_unsafe_call()) return e;
  CUdeviceptr address = 0;
  const CUresult result = map_pages(*context, bytes, kind, flags, address);
  if (result == CUDA_SUCCESS) *out = reinterpret_cast<void*>(address);
  return result;
}

CUresult allocate_managed(CUdeviceptr* out, size_t bytes, unsigned flags) {
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
  return allocate(reinterpret_cast<void**>(out), bytes, MemoryKind::kManaged, flags);
}

CUresult allocate_host(void** out, size_t bytes) { return allocate(out, bytes, MemoryKind::kHost, 0); }
CUresult allocate_host_with_flags(void** out, size_t bytes, unsigned flags) {
  return allocate(out, bytes, MemoryKind::kHost, flags);
}

CUresult free_host(void* pointer) {
  Context* context = nullptr;
  if (const CUresult e = current_context(context)) return e;
  const auto found = state().allocations.find(reinterpret_cast<CUdeviceptr>(pointer));
  if (found == state().allocations.end() || found->second.kind != MemoryKind::kHost) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = refuse_unsafe_call()) return e;
  Context* owner = found->second.context;
  wait_for_context(*owner);
  if (state().allocations.count(reinterpret_cast<CUdeviceptr>(pointer)))
    remove_allocation(reinterpret_cast<CUdeviceptr>(pointer));
  return root_of(*owner).error;
}

CUresult register_host(void* pointer, size_t bytes, unsigned flags) {
  Context* context = nullptr;
  if (const CUresult e = current_context(context)) return e;
  const auto address = reinterpret_cast<CUdeviceptr>(pointer);
  if (!pointer || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (find_allocation(address)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  add_allocation(address, bytes, MemoryKind::kRegistered, context, context->device->ordinal).flags = flags;
  state().regions[address] = Region{bytes, all_devices()};
  return CUDA_SUCCESS;
}

CUresult unregister_host(void* pointer) {
  const auto found = state().allocations.find(reinterpret_cast<CUdeviceptr>(pointer));
  if (found == state().allocations.end() || found->second.kind != MemoryKind::kRegistered)
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  remove_allocation(found->first);
  return CUDA_SUCCESS;
}

CUresult device_pointer(CUdeviceptr* out, void* pointer, unsigned) {
  const Allocation* found = find_allocation(reinterpret_cast<CUdeviceptr>(pointer));
  if (!out || !found || is_device_address(found->start)) return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<CUdeviceptr>(pointer);
  return CUDA_SUCCESS;
}

CUresult host_flags(unsigned* out, void* pointer) {
  const Allocation* found = find_allocation(reinterpret_cast<CUdeviceptr>(pointer));
  if (!out || !found || is_device_address(found->start)) return CUDA_ERROR_INVALID_VALUE;
  *out = found->flags;
  return CUDA_SUCCESS;
}

}  // namespace

void unmap_host(const Allocation& allocation) {
  munmap(reinterpret_cast<void*>(allocation.start), (allocation.size + kPage - 1) / kPage * kPage);
}

}  // namespace gpupool::sim

using namespace gpupool::sim;

CUresult cuMemAllocManaged(CUdeviceptr* out, size_t bytes, unsigned flags) {
  return enter(Symbol::cuMemAllocManaged, allocate_managed, out, bytes, flags);
}
CUresult cuMemAllocHost_v2(void** out, size_t bytes) {
  return enter(Symbol::cuMemAllocHost_v2, allocate_host, out, bytes);
}
CUresult cuMemHostAlloc(void** out, size_t bytes, unsigned flags) {
  return enter(Symbol::cuMemHostAlloc, allocate_host_with_flags, out, bytes, flags);
}
CUresult cuMemFreeHost(void* p) { return enter(Symbol::cuMemFreeHost, free_host, p); }
CUresult cuMemHostRegister_v2(void* p, size_t bytes, unsigned flags) {
  return enter(Symbol::cuMemHostRegister_v2, register_host, p, bytes, flags);
}
CUresult cuMemHostUnregister(void* p) { return enter(Symbol::cuMemHostUnregister, unregister_host, p); }
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* out, void* p, unsigned flags) {
  return enter(Symbol::cuMemHostGetDevicePointer_v2, device_pointer, out, p, flags);
}
CUresult cuMemHostGetFlags(unsigned* out, void* p) { return enter(Symbol::cuMemHostGetFlags, host_flags, out, p); }
