// The driver's start and its devices.
#include <cstdio>
#include <cstring>

#include "tests/simcuda/call.h"
#include "tests/simcuda/settings.h"
#include "tests/simcuda/state.h"

namespace gpupool::sim {
namespace {

CUresult init(unsigned flags) {
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  if (life() == Life::kForked) return CUDA_ERROR_NOT_INITIALIZED;
  if (settings().devices == 0) return CUDA_ERROR_NO_DEVICE;
  life() = Life::kReady;
  return CUDA_SUCCESS;
}

CUresult driver_version(int* out) {
  return out ? (*out = settings().driver_version, CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE;
}

CUresult get(CUdevice* out, int ordinal) {
  Device* device = nullptr;
  if (const CUresult e = device_of(ordinal, device)) return e;
  return out ? (*out = ordinal, CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE;
}

CUresult count(int* out) { return out ? (*out = settings().devices, CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE; }

CUresult get_name(char* out, int size, CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult e = device_of(ordinal, device)) return e;
  if (!out || size <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::snprintf(out, static_cast<size_t>(size), "Simulated GPU");
  return CUDA_SUCCESS;
}

// The same in every process: a configuration by UUID can be tested.
CUresult uuid(CUuuid* out, CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult e = device_of(ordinal, device)) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(out->bytes, "simulated-gpu-00", 16);
  out->bytes[15] = static_cast<char>('0' + ordinal);
  return CUDA_SUCCESS;
}

CUresult total(size_t* out, CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult e = device_of(ordinal, device)) return e;
  return out ? (*out = device->card.total(), CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE;
}

bool has_vmm() { return settings().driver_version >= 10020; }
bool has_pools() { return settings().driver_version >= 11020; }

int attribute_value(CUdevice_attribute attribute, int ordinal) {
  switch (static_cast<int>(attribute)) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      return 32;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return 132;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return 9;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
      return 512;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT:
      return 32;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
      return 2147483647;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      return 3;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      return 1 + ordinal;
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
      return 1;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
      return has_vmm();
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
      return has_pools();
    default:
      return 0;
  }
}

CUresult attribute(int* out, CUdevice_attribute which, CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult e = device_of(ordinal, device)) return e;
  if (!out || which <= 0 || which >= CU_DEVICE_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
  *out = attribute_value(which, ordinal);
  return CUDA_SUCCESS;
}

CUresult capability(int* major, int* minor, CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult e = device_of(ordinal, device)) return e;
  if (!major || !minor) return CUDA_ERROR_INVALID_VALUE;
  *major = 9;
  *minor = 0;
  return CUDA_SUCCESS;
}

CUresult bus_id(char* out, int size, CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult e = device_of(ordinal, device)) return e;
  if (!out || size < 13) return CUDA_ERROR_INVALID_VALUE;
  std::snprintf(out, static_cast<size_t>(size), "0000:%02X:00.0", static_cast<unsigned>(1 + ordinal) & 0xFFu);
  return CUDA_SUCCESS;
}

CUresult by_bus_id(CUdevice* out, const char* text) {
  unsigned domain = 0;
  unsigned bus = 0;
  if (!out || !text || std::sscanf(text, "%x:%x:", &domain, &bus) != 2) return CUDA_ERROR_INVALID_VALUE;
  return get(out, static_cast<int>(bus) - 1);
}

CUresult can_access_peer(int* out, CUdevice from, CUdevice to) {
  Device* device = nullptr;
  if (const CUresult e = device_of(from, device)) return e;
  if (const CUresult e = device_of(to, device)) return e;
  return out ? (*out = from != to, CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE;
}

CUresult p2p_attribute(int* out, CUdevice_P2PAttribute which, CUdevice from, CUdevice to) {
  if (which == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK)
    return out ? (*out = 0, CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE;
  return can_access_peer(out, from, to);
}

}  // namespace
}  // namespace gpupool::sim

using namespace gpupool::sim;

CUresult cuInit(unsigned flags) { return enter_before_init(Symbol::cuInit, init, flags); }
CUresult cuDriverGetVersion(int* out) { return enter_before_init(Symbol::cuDriverGetVersion, driver_version, out); }
CUresult cuDeviceGet(CUdevice* out, int ordinal) { return enter(Symbol::cuDeviceGet, get, out, ordinal); }
CUresult cuDeviceGetCount(int* out) { return enter(Symbol::cuDeviceGetCount, count, out); }
CUresult cuDeviceGetName(char* out, int size, CUdevice d) {
  return enter(Symbol::cuDeviceGetName, get_name, out, size, d);
}
CUresult cuDeviceGetUuid(CUuuid* out, CUdevice d) { return enter(Symbol::cuDeviceGetUuid, uuid, out, d); }
CUresult cuDeviceGetUuid_v2(CUuuid* out, CUdevice d) { return enter(Symbol::cuDeviceGetUuid_v2, uuid, out, d); }
CUresult cuDeviceTotalMem_v2(size_t* out, CUdevice d) { return enter(Symbol::cuDeviceTotalMem_v2, total, out, d); }
CUresult cuDeviceGetAttribute(int* out, CUdevice_attribute a, CUdevice d) {
  return enter(Symbol::cuDeviceGetAttribute, attribute, out, a, d);
}
CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice d) {
  return enter(Symbol::cuDeviceComputeCapability, capability, major, minor, d);
}
CUresult cuDeviceGetPCIBusId(char* out, int size, CUdevice d) {
  return enter(Symbol::cuDeviceGetPCIBusId, bus_id, out, size, d);
}
CUresult cuDeviceGetByPCIBusId(CUdevice* out, const char* text) {
  return enter(Symbol::cuDeviceGetByPCIBusId, by_bus_id, out, text);
}
CUresult cuDeviceCanAccessPeer(int* out, CUdevice a, CUdevice b) {
  return enter(Symbol::cuDeviceCanAccessPeer, can_access_peer, out, a, b);
}
CUresult cuDeviceGetP2PAttribute(int* out, CUdevice_P2PAttribute which, CUdevice a, CUdevice b) {
  return enter(Symbol::cuDeviceGetP2PAttribute, p2p_attribute, out, which, a, b);
}
