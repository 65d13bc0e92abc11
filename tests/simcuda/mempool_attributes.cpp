// What a program may ask of and set on a memory pool, and the graph memory counters of a card.
#include <algorithm>
#include <cstring>

#include "tests/simcuda/call.h"
#include "tests/simcuda/mempool.h"

namespace gpupool::sim {
namespace {

CUresult find_pool(CUmemoryPool pool) {
  return state().pools.valid(pool) && !pool->destroyed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult create(CUmemoryPool* out, const CUmemPoolProps* props) {
  if (!out || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  Device* device = nullptr;
  if (const CUresult e = device_of(props->location.id, device)) return e;
  *out = make_pool(*device, *props);
  return CUDA_SUCCESS;
}

CUresult destroy(CUmemoryPool pool) {
  if (const CUresult e = find_pool(pool)) return e;
  if (pool == pool->device->default_pool) return CUDA_ERROR_INVALID_VALUE;
  destroy_pool(pool);
  return CUDA_SUCCESS;
}

CUresult trim_to(CUmemoryPool pool, size_t keep) {
  if (const CUresult e = find_pool(pool)) return e;
  trim_pool(pool, keep);
  return CUDA_SUCCESS;
}

CUresult get_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  if (const CUresult e = find_pool(pool)) return e;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  const auto flag = [value](int v) { return std::memcpy(value, &v, sizeof v), CUDA_SUCCESS; };
  const auto bytes = [value](cuuint64_t v) { return std::memcpy(value, &v, sizeof v), CUDA_SUCCESS; };
  switch (static_cast<int>(attribute)) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      return flag(pool->reuse_event_dependencies);
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      return flag(pool->reuse_opportunistic);
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      return flag(pool->reuse_internal_dependencies);
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      return bytes(pool->release_threshold);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      return bytes(pool->memory.held());
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return bytes(pool->reserved_high);
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      return bytes(pool->used);
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return bytes(pool->used_high);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult set_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  if (const CUresult e = find_pool(pool)) return e;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  int flag = 0;
  cuuint64_t bytes = 0;
  std::memcpy(&flag, value, sizeof flag);
  const auto read_bytes = [&] { return std::memcpy(&bytes, value, sizeof bytes), bytes; };
  switch (static_cast<int>(attribute)) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      pool->reuse_event_dependencies = flag;
      break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      pool->reuse_opportunistic = flag;
      break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      pool->reuse_internal_dependencies = flag;
      break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      pool->release_threshold = read_bytes();
      break;
    // High marks can only be reset.
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      if (read_bytes() != 0) return CUDA_ERROR_INVALID_VALUE;
      pool->reserved_high = pool->memory.held();
      break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (read_bytes() != 0) return CUDA_ERROR_INVALID_VALUE;
      pool->used_high = pool->used;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult set_access(CUmemoryPool pool, const CUmemAccessDesc* descriptions, size_t count) {
  if (const CUresult e = find_pool(pool)) return e;
  if (!descriptions) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    Device* device = nullptr;
    if (descriptions[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult e = device_of(descriptions[i].location.id, device)) return e;
    const bool own = device == pool->device;
    if (descriptions[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE && own) return CUDA_ERROR_INVALID_DEVICE;
    if (descriptions[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ) return CUDA_ERROR_NOT_SUPPORTED;
    if (descriptions[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) {
      pool->devices.erase(device->ordinal);
    } else {
      pool->devices.insert(device->ordinal);
    }
  }
  for (uint64_t step : pool->memory.steps()) state().regions[step].devices = pool->devices;
  return CUDA_SUCCESS;
}

CUresult get_access(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location) {
  if (const CUresult e = find_pool(pool)) return e;
  if (!flags || !location) return CUDA_ERROR_INVALID_VALUE;
  *flags = pool->devices.count(location->id) ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

CUresult get_default(CUmemoryPool* out, CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult e = device_of(ordinal, device)) return e;
  return out ? (*out = default_pool(*device), CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE;
}

CUresult get_current(CUmemoryPool* out, CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult e = device_of(ordinal, device)) return e;
  return out ? (*out = current_pool(*device), CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE;
}

CUresult set_current(CUdevice ordinal, CUmemoryPool pool) {
  Device* device = nullptr;
  if (const CUresult e = device_of(ordinal, device)) return e;
  if (const CUresult e = find_pool(pool)) return e;
  if (pool->device != device) return CUDA_ERROR_INVALID_DEVICE;
  device->current_pool = pool;
  return CUDA_SUCCESS;
}

CUresult check_location(const CUmemLocation* location, CUmemAllocationType type) {
  if (!location || type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  return location->type == CU_MEM_LOCATION_TYPE_DEVICE ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult get_default_at(CUmemoryPool* out, CUmemLocation* location, CUmemAllocationType type) {
  if (const CUresult e = check_location(location, type)) return e;
  return get_default(out, location->id);
}

CUresult get_current_at(CUmemoryPool* out, CUmemLocation* location, CUmemAllocationType type) {
  if (const CUresult e = check_location(location, type)) return e;
  return get_current(out, location->id);
}

CUresult set_current_at(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  if (const CUresult e = check_location(location, type)) return e;
  return set_current(location->id, pool);
}

// Pools between processes are not simulated.
CUresult export_pool(void*, CUmemoryPool, CUmemAllocationHandleType, unsigned long long) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult import_pool(CUmemoryPool*, void*, CUmemAllocationHandleType, unsigned long long) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult export_pointer(CUmemPoolPtrExportData*, CUdeviceptr) { return CUDA_ERROR_INVALID_VALUE; }
CUresult import_pointer(CUdeviceptr*, CUmemoryPool, CUmemPoolPtrExportData*) { return CUDA_ERROR_NOT_SUPPORTED; }

CUresult graph_attribute(CUdevice ordinal, CUgraphMem_attribute attribute, void* value) {
  Device* device = nullptr;
  if (const CUresult e = device_of(ordinal, device)) return e;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  const bool high = attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
  const cuuint64_t bytes = high ? device->graph_used_high : device->graph_used;
  std::memcpy(value, &bytes, sizeof bytes);
  return CUDA_SUCCESS;
}

CUresult set_graph_attribute(CUdevice ordinal, CUgraphMem_attribute, void*) {
  Device* device = nullptr;
  if (const CUresult e = device_of(ordinal, device)) return e;
  device->graph_used_high = device->graph_used;
  return CUDA_SUCCESS;
}

CUresult graph_trim(CUdevice ordinal) {
  Device* device = nullptr;
  return device_of(ordinal, device);
}

}  // namespace
}  // namespace gpupool::sim

using namespace gpupool::sim;

CUresult cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* props) {
  return enter(Symbol::cuMemPoolCreate, create, out, props);
}
CUresult cuMemPoolDestroy(CUmemoryPool pool) { return enter(Symbol::cuMemPoolDestroy, destroy, pool); }
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) { return enter(Symbol::cuMemPoolTrimTo, trim_to, pool, keep); }
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute a, void* value) {
  return enter(Symbol::cuMemPoolGetAttribute, get_attribute, pool, a, value);
}
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute a, void* value) {
  return enter(Symbol::cuMemPoolSetAttribute, set_attribute, pool, a, value);
}
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* d, size_t count) {
  return enter(Symbol::cuMemPoolSetAccess, set_access, pool, d, count);
}
CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location) {
  return enter(Symbol::cuMemPoolGetAccess, get_access, flags, pool, location);
}
CUresult cuMemPoolExportToShareableHandle(void* out, CUmemoryPool pool, CUmemAllocationHandleType type,
                                          unsigned long long flags) {
  return enter(Symbol::cuMemPoolExportToShareableHandle, export_pool, out, pool, type, flags);
}
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* out, void* handle, CUmemAllocationHandleType type,
                                            unsigned long long flags) {
  return enter(Symbol::cuMemPoolImportFromShareableHandle, import_pool, out, handle, type, flags);
}
CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* out, CUdeviceptr address) {
  return enter(Symbol::cuMemPoolExportPointer, export_pointer, out, address);
}
CUresult cuMemPoolImportPointer(CUdeviceptr* out, CUmemoryPool pool, CUmemPoolPtrExportData* data) {
  return enter(Symbol::cuMemPoolImportPointer, import_pointer, out, pool, data);
}
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice d) {
  return enter(Symbol::cuDeviceGetDefaultMemPool, get_default, out, d);
}
CUresult cuDeviceGetMemPool(CUmemoryPool* out, CUdevice d) {
  return enter(Symbol::cuDeviceGetMemPool, get_current, out, d);
}
CUresult cuDeviceSetMemPool(CUdevice d, CUmemoryPool pool) {
  return enter(Symbol::cuDeviceSetMemPool, set_current, d, pool);
}
CUresult cuMemGetDefaultMemPool(CUmemoryPool* out, CUmemLocation* location, CUmemAllocationType type) {
  return enter(Symbol::cuMemGetDefaultMemPool, get_default_at, out, location, type);
}
CUresult cuMemGetMemPool(CUmemoryPool* out, CUmemLocation* location, CUmemAllocationType type) {
  return enter(Symbol::cuMemGetMemPool, get_current_at, out, location, type);
}
CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  return enter(Symbol::cuMemSetMemPool, set_current_at, location, type, pool);
}
CUresult cuDeviceGetGraphMemAttribute(CUdevice d, CUgraphMem_attribute a, void* value) {
  return enter(Symbol::cuDeviceGetGraphMemAttribute, graph_attribute, d, a, value);
}
CUresult cuDeviceSetGraphMemAttribute(CUdevice d, CUgraphMem_attribute a, void* value) {
  return enter(Symbol::cuDeviceSetGraphMemAttribute, set_graph_attribute, d, a, value);
}
CUresult cuDeviceGraphMemTrim(CUdevice d) { return enter(Symbol::cuDeviceGraphMemTrim, graph_trim, d); }
