// The program's memory pools. The driver's own pool stays behind each handle: every call goes to it first, so that
// wrong arguments get the native answer. Its bytes are counted here, whoever served them.
#include "preload/real.h"

#include <algorithm>

#include "preload/pool_calls.h"
#include "preload/serve.h"

namespace gpupool {
namespace {

PoolHandle key(CUmemoryPool handle) { return reinterpret_cast<PoolHandle>(handle); }

MemoryPool* adopt_default(CUdevice device, CUmemoryPool handle) {
  CUmemoryPool default_pool = nullptr;
  if (real::cuDeviceGetDefaultMemPool(&default_pool, device) != CUDA_SUCCESS || default_pool != handle) return nullptr;
  return process().pools.adopt(key(handle), device, PoolOrigin::kDevice, 0);
}

// Device-located, pinned and not to be shared: what the tape can stand in for.
bool serveable(const CUmemPoolProps& props) {
  return props.allocType == CU_MEM_ALLOCATION_TYPE_PINNED && props.handleTypes == CU_MEM_HANDLE_TYPE_NONE &&
         props.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

template <class Visit>
void each_home_on(CUdevice device, Visit visit) {
  process().registry.each([&](Home& home) {
    if (home.device() == device && home.serves()) visit(home);
  });
}

}  // namespace

MemoryPool* find_current_pool(const Guard&, CUdevice device) {
  MemoryPools& pools = process().pools;
  MemoryPool* pool = nullptr;
  switch (pools.current(device, pool)) {
    case MemoryPools::Current::kOurs:
      return pool;
    case MemoryPools::Current::kForeign:
      return nullptr;
    case MemoryPools::Current::kUnknown:
      break;
  }
  CUmemoryPool handle = nullptr;
  if (real::cuDeviceGetMemPool(&handle, device) != CUDA_SUCCESS) return nullptr;
  pool = pools.find(key(handle));
  if (!pool) pool = adopt_default(device, handle);
  pools.set_current(device, pool);
  return pool;
}

MemoryPool* known_pool(const Guard&, CUmemoryPool handle) {
  if (!handle) return nullptr;
  if (MemoryPool* pool = process().pools.find(key(handle))) return pool;
  CUdevice device = 0;
  if (setup().api.cuCtxGetDevice(&device) != CUDA_SUCCESS) return nullptr;
  MemoryPool* pool = adopt_default(device, handle);
  if (pool) return pool;
  // The default pool of another device: its first use is rare enough to ask for all of them.
  for (CUdevice other = 0; other < MemoryPools::kMostDevices && !pool; ++other) {
    CUdevice present = 0;
    if (setup().api.cuDeviceGet(&present, other) != CUDA_SUCCESS) break;
    pool = adopt_default(present, handle);
  }
  return pool;
}

namespace hook {

CUresult cuMemPoolCreate(CUmemoryPool* handle, const CUmemPoolProps* props) {
  const Guard guard;
  const auto ask = [&] { return real::cuMemPoolCreate(handle, props); };
  if (guard.nested()) return ask();
  const CUresult result = watched(guard, kRow_cuMemPoolCreate, 0, ask);
  if (result == CUDA_SUCCESS && serveable(*props))
    process().pools.adopt(key(*handle), props->location.id, PoolOrigin::kProgram, props->maxSize);
  return result;
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  const Guard guard;
  MemoryPool* pool = guard.nested() ? nullptr : process().pools.find(key(handle));
  // Ours goes first: the driver may give the handle to another pool at once.
  if (!pool) return real::cuMemPoolDestroy(handle);
  process().pools.destroy(*pool);
  const CUresult result = real::cuMemPoolDestroy(handle);
  if (result != CUDA_SUCCESS) pool->restore();
  return result;
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, std::size_t keep) {
  const Guard guard;
  const CUresult result = real::cuMemPoolTrimTo(handle, keep);
  MemoryPool* pool = guard.nested() || result != CUDA_SUCCESS ? nullptr : known_pool(guard, handle);
  if (!pool) return result;
  pool->trim(keep);
  each_home_on(pool->device(), [&](Home& home) {
    if (!home.stopped()) home.tape()->trim(std::max<std::uint64_t>(keep, home.resolved().size));
  });
  return result;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  const Guard guard;
  const CUresult result = real::cuMemPoolSetAttribute(handle, attribute, value);
  MemoryPool* pool = guard.nested() || result != CUDA_SUCCESS ? nullptr : known_pool(guard, handle);
  if (!pool) return result;
  // Attributes without a case live in the driver's pool alone.
  if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
    pool->set_release_threshold(*static_cast<const cuuint64_t*>(value));
  if (attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)
    pool->set_may_wait(*static_cast<const int*>(value) != 0);
  if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) pool->reset_used_high();
  if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) pool->reset_reserved_high();
  return result;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  const Guard guard;
  const CUresult result = real::cuMemPoolGetAttribute(handle, attribute, value);
  MemoryPool* pool = guard.nested() || result != CUDA_SUCCESS ? nullptr : known_pool(guard, handle);
  // Where no tape serves the device, the driver has counted everything.
  bool served = false;
  if (pool) each_home_on(pool->device(), [&](Home&) { served = true; });
  if (!served) return result;
  auto& bytes = *static_cast<cuuint64_t*>(value);
  if (attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT) bytes = pool->used();
  if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) bytes = pool->used_high();
  if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) bytes = pool->reserved();
  if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) bytes = pool->reserved_high();
  return result;
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* descriptions, std::size_t count) {
  const Guard guard;
  const CUresult result = real::cuMemPoolSetAccess(handle, descriptions, count);
  MemoryPool* pool = guard.nested() || result != CUDA_SUCCESS ? nullptr : known_pool(guard, handle);
  for (std::size_t i = 0; pool && i < count; ++i) {
    const CUmemAccessDesc& wanted = descriptions[i];
    if (wanted.location.type != CU_MEM_LOCATION_TYPE_DEVICE || wanted.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) continue;
    if (wanted.location.id != pool->device()) pool->open();
    process().registry.access_granted(pool->device(), wanted.location.id);
  }
  return result;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle, CUmemLocation* location) {
  return real::cuMemPoolGetAccess(flags, handle, location);
}

// Our pools are not exportable, and the driver refuses an address that it does not know, as it refuses one of such a
// pool.
CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* data, CUdeviceptr address) {
  return real::cuMemPoolExportPointer(data, address);
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool handle) {
  const CUresult result = real::cuDeviceSetMemPool(device, handle);
  process().pools.forget_current();
  return result;
}

CUresult cuDeviceGetMemPool(CUmemoryPool* handle, CUdevice device) { return real::cuDeviceGetMemPool(handle, device); }

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* handle, CUdevice device) {
  return real::cuDeviceGetDefaultMemPool(handle, device);
}

CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool handle) {
  const CUresult result = real::cuMemSetMemPool(location, type, handle);
  process().pools.forget_current();
  return result;
}

CUresult cuMemGetMemPool(CUmemoryPool* handle, CUmemLocation* location, CUmemAllocationType type) {
  return real::cuMemGetMemPool(handle, location, type);
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool* handle, CUmemLocation* location, CUmemAllocationType type) {
  return real::cuMemGetDefaultMemPool(handle, location, type);
}

}  // namespace hook
}  // namespace gpupool
