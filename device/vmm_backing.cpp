// See vmm_backing.h.
#include "device/vmm_backing.h"

#include <algorithm>
#include <new>

#include "device/card.h"
#include "device/context.h"

namespace gpupool {
namespace {

CUmemAccessDesc access_of(CUdevice device, CUmemAccess_flags flags) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = flags;
  return access;
}

CUmemLocation location_of(CUmemLocationType type, int id) {
  CUmemLocation location{};
  location.type = type;
  location.id = id;
  return location;
}

/// Where host memory can come from, the nearest to the device first.
std::vector<CUmemLocation> host_locations(const DriverApi& api, CUdevice device) {
  std::vector<CUmemLocation> locations;
  const int node = attribute_of(api, device, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, -1);
  if (node >= 0) locations.push_back(location_of(CU_MEM_LOCATION_TYPE_HOST_NUMA, node));
  locations.push_back(location_of(CU_MEM_LOCATION_TYPE_HOST, 0));
  return locations;
}

/// The least unit of such memory, 0 if there is none. The minimum, not the recommended size: how large handles should
/// be is the tape's choice, and a unit larger than need be would only round it up.
std::uint64_t unit_of(const DriverApi& api, const CUmemAllocationProp& properties) {
  std::size_t unit = 0;
  const CUresult result = api.cuMemGetAllocationGranularity(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  return result == CUDA_SUCCESS ? unit : 0;
}

/// An environment may forbid shareable handles that the device has.
bool refuses_kind(CUresult result) {
  return result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_NOT_PERMITTED ||
         result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_OPERATING_SYSTEM;
}

}  // namespace

bool VmmBacking::supported(const DriverApi& api, CUdevice device) {
  return api.has_vmm() && attribute_of(api, device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0) != 0;
}

VmmBacking::VmmBacking(const DriverApi& api, CUcontext context, CUdevice device)
    : api_(api), context_(context), device_(device), card_(location_of(CU_MEM_LOCATION_TYPE_DEVICE, device)) {
  rdma_ = attribute_of(api, device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 0) != 0;
  shareable_ = api.has_shareable_handles() &&
               attribute_of(api, device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0) != 0;
  access_.push_back(access_of(device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  granularity_ = std::max(unit_of(api, properties(card_)), std::uint64_t{512});
  // Both kinds lie on one tape, but host memory is the exception: it has to fit the device's unit, not the other way
  // round.
  for (const CUmemLocation& location : host_locations(api, device)) {
    const std::uint64_t unit = unit_of(api, properties(location));
    if (unit != 0 && granularity_ % unit == 0) host_.push_back(location);
  }
}

CUmemAllocationProp VmmBacking::properties(const CUmemLocation& location) const {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
  const bool on_card = location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location = location;
  properties.allocFlags.gpuDirectRDMACapable = rdma_ && on_card ? 1 : 0;
  if (shareable() && on_card) properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

DriverAnswer VmmBacking::reserve(std::uint64_t bytes, std::uint64_t& address) {
  CUdeviceptr start = 0;
  const CUresult result = api_.cuMemAddressReserve(&start, bytes, granularity_, 0, 0);
  address = result == CUDA_SUCCESS ? start : 0;
  return {result};
}

void VmmBacking::unreserve(std::uint64_t address, std::uint64_t bytes) { api_.cuMemAddressFree(address, bytes); }

DriverAnswer VmmBacking::create(std::uint64_t bytes, Location location, Handle& handle) {
  CUresult result = CUDA_ERROR_NOT_SUPPORTED;
  const auto create_at = [&](const CUmemLocation& place) {
    CUmemAllocationProp wanted = properties(place);
    CUmemGenericAllocationHandle physical = 0;
    result = api_.cuMemCreate(&physical, bytes, &wanted, 0);
    if (wanted.requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE && refuses_kind(result)) {
      wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
      result = api_.cuMemCreate(&physical, bytes, &wanted, 0);
      if (result == CUDA_SUCCESS) shareable_ = false;
    }
    if (result == CUDA_SUCCESS) handle = {physical, bytes, 0, location};
    return result == CUDA_SUCCESS;
  };
  if (location == Location::kDevice) {
    create_at(card_);
  } else {
    std::any_of(host_.begin(), host_.end(), create_at);
  }
  return {result};
}

void VmmBacking::destroy(const Handle& handle) { api_.cuMemRelease(handle.id); }

DriverAnswer VmmBacking::map(const Handle& handle, std::uint64_t address) try {
  const auto [entry, fresh] = mappings_.try_emplace(address, handle.bytes);
  if (!fresh) return {CUDA_ERROR_INVALID_VALUE};
  CUresult result = api_.cuMemMap(address, handle.bytes, 0, handle.id, 0);
  if (result == CUDA_SUCCESS) {
    result = api_.cuMemSetAccess(address, handle.bytes, access_.data(), access_.size());
    if (result != CUDA_SUCCESS) api_.cuMemUnmap(address, handle.bytes);
  }
  if (result != CUDA_SUCCESS) mappings_.erase(entry);
  return {result};
} catch (const std::bad_alloc&) {
  return {CUDA_ERROR_OUT_OF_MEMORY};
}

DriverAnswer VmmBacking::unmap(const Handle& handle, std::uint64_t address) {
  const CUresult result = api_.cuMemUnmap(address, handle.bytes);
  if (result == CUDA_SUCCESS) mappings_.erase(address);
  return {result};
}

DriverAnswer VmmBacking::share(const Handle& handle, int& descriptor) const {
  if (!shareable()) return {CUDA_ERROR_NOT_SUPPORTED};
  return {api_.cuMemExportToShareableHandle(&descriptor, handle.id, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)};
}

CardMemory VmmBacking::card_memory() { return card_memory_of(api_, context_); }

DriverAnswer VmmBacking::add_peer(CUdevice peer) try {
  const auto known = [peer](const CUmemAccessDesc& access) { return access.location.id == peer; };
  if (std::any_of(access_.begin(), access_.end(), known)) return {};
  access_.reserve(access_.size() + 1);
  const CUresult result = set_access_everywhere(peer, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  if (result == CUDA_SUCCESS) {
    access_.push_back(access_of(peer, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  } else {
    set_access_everywhere(peer, CU_MEM_ACCESS_FLAGS_PROT_NONE);
  }
  return {result};
} catch (const std::bad_alloc&) {
  return {CUDA_ERROR_OUT_OF_MEMORY};
}

void VmmBacking::remove_peer(CUdevice peer) {
  if (peer == device_) return;
  const auto gone = [peer](const CUmemAccessDesc& access) { return access.location.id == peer; };
  if (std::erase_if(access_, gone) != 0) set_access_everywhere(peer, CU_MEM_ACCESS_FLAGS_PROT_NONE);
}

/// Sets one device's access on every mapping, one driver call for each run of adjacent ones. Stops at the first
/// refusal.
CUresult VmmBacking::set_access_everywhere(CUdevice device, CUmemAccess_flags flags) {
  const CUmemAccessDesc access = access_of(device, flags);
  for (auto run = mappings_.begin(); run != mappings_.end();) {
    std::uint64_t end = run->first + run->second;
    auto next = std::next(run);
    for (; next != mappings_.end() && next->first == end; ++next) end += next->second;
    const CUresult result = api_.cuMemSetAccess(run->first, end - run->first, &access, 1);
    if (result != CUDA_SUCCESS) return result;
    run = next;
  }
  return CUDA_SUCCESS;
}

}  // namespace gpupool
