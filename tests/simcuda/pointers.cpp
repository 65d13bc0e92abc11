// What the driver says about an address. The differences between plain and VMM memory are the measured ones.
#include <cstring>

#include "tests/simcuda/call.h"
#include "tests/simcuda/memory.h"
#include "tests/simcuda/pool_memory.h"

namespace gpupool::sim {
namespace {

constexpr unsigned kVaSpaceToken = 0xfe00;

// One address, described once for all attributes.
struct Facts {
  bool known = false;
  bool is_device = false;
  bool is_managed = false;
  bool is_vmm = false;
  bool legacy_ipc = false;
  bool rdma = false;
  unsigned handle_types = 0;
  Context* context = nullptr;
  int device = 0;
  CUmemoryPool pool = nullptr;
  CUdeviceptr range_start = 0;
  uint64_t range_size = 0;
  CUdeviceptr mapping_start = 0;
  uint64_t mapping_size = 0;
  uint64_t buffer_id = 0;
};

Facts describe(CUdeviceptr address) {
  Facts f;
  if (const Allocation* a = find_allocation(address)) {
    f.known = true;
    f.is_device = is_device_address(address);
    f.is_managed = a->kind == MemoryKind::kManaged;
    f.legacy_ipc = a->kind == MemoryKind::kPlain;
    f.rdma = a->kind == MemoryKind::kPlain;
    f.context = a->context;
    f.device = a->device;
    f.pool = a->pool;
    f.range_start = a->start;
    f.range_size = a->size;
    const uint64_t piece = a->kind == MemoryKind::kPooled ? PoolMemory::kStep : kGranularity;
    f.mapping_start = a->start / piece * piece;
    f.mapping_size = (a->start + a->size + piece - 1) / piece * piece - f.mapping_start;
    f.buffer_id = a->buffer_id;
    return f;
  }
  const auto mapping = find_mapping(address);
  if (mapping == state().mappings.end()) return f;
  const auto reservation = find_reservation(address);
  const Physical& physical = *mapping->second.physical;
  f.known = f.is_vmm = true;
  f.is_device = physical.prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  f.rdma = physical.prop.allocFlags.gpuDirectRDMACapable;
  f.handle_types = physical.prop.requestedHandleTypes;
  f.device = f.is_device ? physical.prop.location.id : 0;
  f.range_start = reservation->first;
  f.range_size = reservation->second;
  f.mapping_start = mapping->first;
  f.mapping_size = mapping->second.size;
  f.buffer_id = mapping->second.buffer_id;
  return f;
}

template <class T>
CUresult put(void* out, T value) {
  std::memcpy(out, &value, sizeof value);
  return CUDA_SUCCESS;
}

CUresult answer(void* out, CUpointer_attribute attribute, CUdeviceptr address, const Facts& f) {
  switch (static_cast<int>(attribute)) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return put<CUcontext>(out, f.context);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put<unsigned>(out, f.is_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return put<CUdeviceptr>(out, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (f.is_device && !f.is_managed) return CUDA_ERROR_INVALID_VALUE;
      return put<void*>(out, reinterpret_cast<void*>(address));
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
      return f.is_device ? put(out, CUDA_POINTER_ATTRIBUTE_P2P_TOKENS{0, kVaSpaceToken}) : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return put<unsigned>(out, 1);  // as measured, though nobody asked for it
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return put<unsigned long long>(out, f.buffer_id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return put<unsigned>(out, f.is_managed);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put<int>(out, f.device);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return put<unsigned>(out, f.legacy_ipc);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put<CUdeviceptr>(out, f.range_start);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put<size_t>(out, f.range_size);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return put<unsigned>(out, 1);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return put<unsigned long long>(out, f.handle_types);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return put<unsigned>(out, f.rdma);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return put<unsigned>(out, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return put<CUmemoryPool>(out, f.pool);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return put<size_t>(out, f.mapping_size);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return put<CUdeviceptr>(out, f.mapping_start);
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return put<unsigned long long>(out, f.buffer_id);
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      return put<unsigned>(out, f.legacy_ipc);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult get_one(void* out, CUpointer_attribute attribute, CUdeviceptr address) {
  if (!out || !address) return CUDA_ERROR_INVALID_VALUE;
  const Facts facts = describe(address);
  return facts.known ? answer(out, attribute, address, facts) : CUDA_ERROR_INVALID_VALUE;
}

size_t size_of(CUpointer_attribute attribute) {
  switch (static_cast<int>(attribute)) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return 8;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
      return sizeof(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS);
    default:
      return 4;
  }
}

// Of an unknown address everything is zero, and the call succeeds.
CUresult get_many(unsigned count, CUpointer_attribute* attributes, void** out, CUdeviceptr address) {
  if (!attributes || !out) return CUDA_ERROR_INVALID_VALUE;
  const Facts facts = describe(address);
  for (unsigned i = 0; i < count; ++i) {
    if (facts.known && answer(out[i], attributes[i], address, facts) == CUDA_SUCCESS) continue;
    std::memset(out[i], 0, size_of(attributes[i]));
    if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL && !facts.known) put<int>(out[i], -2);
  }
  return CUDA_SUCCESS;
}

CUresult set_one(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
  if (Allocation* a = find_allocation(address)) {
    unsigned on = 0;
    std::memcpy(&on, value, sizeof on);
    a->sync_memops = on != 0;
    return CUDA_SUCCESS;
  }
  return find_mapping(address) != state().mappings.end() ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace
}  // namespace gpupool::sim

using namespace gpupool::sim;

CUresult cuPointerGetAttribute(void* out, CUpointer_attribute a, CUdeviceptr address) {
  return enter(Symbol::cuPointerGetAttribute, get_one, out, a, address);
}
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* a, void** out, CUdeviceptr address) {
  return enter(Symbol::cuPointerGetAttributes, get_many, count, a, out, address);
}
CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute a, CUdeviceptr address) {
  return enter(Symbol::cuPointerSetAttribute, set_one, value, a, address);
}
