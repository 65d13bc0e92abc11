// The VMM interface as it was measured: a mapping covers its handle whole, an unmap covers mappings whole, nothing
// waits for the device, nothing disturbs a capture, and a reset of the context takes nothing back. A card's
// handles lie in one file, one behind the other, so that a small limit of open files is no limit of handles.
#include "tests/simcuda/vmm.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "tests/simcuda/call.h"
#include "tests/simcuda/memory_file.h"

namespace gpupool::sim {
namespace {

constexpr uint64_t kMostAddresses = uint64_t{1} << 46;

bool is_host(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_HOST || location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
         location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

CUresult reserve(CUdeviceptr* out, size_t size, size_t alignment, CUdeviceptr, unsigned long long flags) {
  if (!out || size == 0 || size % kGranularity || flags) return CUDA_ERROR_INVALID_VALUE;
  if (alignment & (alignment - 1)) return CUDA_ERROR_INVALID_VALUE;
  if (size > kMostAddresses) return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t unit = alignment > kGranularity ? alignment : kGranularity;
  void* wide = mmap(nullptr, size + unit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (wide == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto from = reinterpret_cast<uint64_t>(wide);
  const uint64_t start = (from + unit - 1) / unit * unit;
  if (start > from) munmap(wide, start - from);
  if (start < from + unit) munmap(reinterpret_cast<void*>(start + size), from + unit - start);
  state().reservations[start] = size;
  *out = start;
  return CUDA_SUCCESS;
}

CUresult address_free(CUdeviceptr start, size_t size) {
  const auto found = state().reservations.find(start);
  if (found == state().reservations.end() || found->second != size) return CUDA_ERROR_INVALID_VALUE;
  const auto mapping = state().mappings.lower_bound(start);
  if (mapping != state().mappings.end() && mapping->first < start + size) return CUDA_ERROR_INVALID_VALUE;
  munmap(reinterpret_cast<void*>(start), size);
  state().reservations.erase(found);
  return CUDA_SUCCESS;
}

CUresult open_file(const char* name, uint64_t size, int& out) {
  out = memory_file(name);
  if (out < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  return ftruncate(out, static_cast<off_t>(size)) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult place(Physical& physical) {
  // The name tells an importer which card it is.
  const std::string name = "simcuda-card:" + std::to_string(physical.device);
  if (physical.device < 0) {
    physical.own_file = true;
    return open_file(name.c_str(), physical.size, physical.file);
  }
  Device& device = *state().devices[static_cast<size_t>(physical.device)];
  if (device.vmm_file < 0) {
    if (const CUresult e = open_file(name.c_str(), 0, device.vmm_file)) return e;
  }
  physical.file = device.vmm_file;
  physical.file_offset = device.vmm_file_end;
  device.vmm_file_end += physical.size;
  return ftruncate(device.vmm_file, static_cast<off_t>(device.vmm_file_end)) == 0 ? CUDA_SUCCESS
                                                                                  : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult create(CUmemGenericAllocationHandle* out, size_t size, const CUmemAllocationProp* prop,
                unsigned long long flags) {
  if (!out || !prop || size == 0 || size % kGranularity || flags) return CUDA_ERROR_INVALID_VALUE;
  if (prop->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  constexpr unsigned kShareable = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if (static_cast<unsigned>(prop->requestedHandleTypes) & ~kShareable) return CUDA_ERROR_NOT_SUPPORTED;
  Device* device = nullptr;
  if (!is_host(prop->location)) {
    if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult e = device_of(prop->location.id, device)) return e;
    if (!device->card.take(size)) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  auto physical = std::make_shared<Physical>();
  physical->size = size;
  physical->prop = *prop;
  physical->device = device ? device->ordinal : -1;
  if (const CUresult e = place(*physical)) return e;
  *out = add_vmm_handle(std::move(physical));
  return CUDA_SUCCESS;
}

CUresult release(CUmemGenericAllocationHandle handle) {
  const auto found = state().vmm_handles.find(handle);
  if (found == state().vmm_handles.end()) return CUDA_ERROR_INVALID_VALUE;
  if (--found->second.users == 0) state().vmm_handles.erase(found);
  return CUDA_SUCCESS;
}

bool overlaps_mapping(CUdeviceptr start, uint64_t size) {
  const auto next = state().mappings.lower_bound(start);
  return (next != state().mappings.end() && next->first < start + size) ||
         find_mapping(start) != state().mappings.end();
}

CUresult map(CUdeviceptr start, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
             unsigned long long flags) {
  const std::shared_ptr<Physical> physical = find_physical(handle);
  if (!physical || size == 0 || flags || start % kGranularity || size % kGranularity) return CUDA_ERROR_INVALID_VALUE;
  const auto reservation = find_reservation(start);
  if (reservation == state().reservations.end() || size > reservation->first + reservation->second - start)
    return CUDA_ERROR_INVALID_VALUE;
  if (offset != 0 || size < physical->size) return CUDA_ERROR_NOT_SUPPORTED;
  if (size > physical->size || overlaps_mapping(start, size)) return CUDA_ERROR_INVALID_VALUE;
  void* mapped = mmap(reinterpret_cast<void*>(start), size, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
                      physical->file, static_cast<off_t>(physical->file_offset));
  if (mapped == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  Mapping& made = state().mappings[start];
  made.size = size;
  made.physical = physical;
  made.buffer_id = state().next_id++;
  return CUDA_SUCCESS;
}

// Whether [start, start + size) is made of whole mappings without a gap.
bool is_whole_mappings(CUdeviceptr start, size_t size) {
  const CUdeviceptr end = start + size;
  auto mapping = state().mappings.find(start);
  while (start < end && mapping != state().mappings.end() && mapping->first == start) {
    start += mapping->second.size;
    ++mapping;
  }
  return size > 0 && start == end;
}

CUresult unmap(CUdeviceptr start, size_t size) {
  if (!is_whole_mappings(start, size)) return CUDA_ERROR_INVALID_VALUE;
  void* emptied = mmap(reinterpret_cast<void*>(start), size, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  if (emptied == MAP_FAILED) return CUDA_ERROR_UNKNOWN;
  state().mappings.erase(state().mappings.find(start), state().mappings.lower_bound(start + size));
  return CUDA_SUCCESS;
}

CUresult set_access(CUdeviceptr start, size_t size, const CUmemAccessDesc* descriptions, size_t count) {
  if (!descriptions || count == 0 || !is_whole_mappings(start, size)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    Device* device = nullptr;
    if (is_host(descriptions[i].location)) continue;
    if (descriptions[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult e = device_of(descriptions[i].location.id, device)) return e;
  }
  for (auto m = state().mappings.find(start); m != state().mappings.end() && m->first < start + size; ++m) {
    for (size_t i = 0; i < count; ++i)
      m->second.access[is_host(descriptions[i].location) ? -1 : descriptions[i].location.id] = descriptions[i].flags;
  }
  // Who may touch it is checked when work runs; the pages themselves are open as soon as anybody may.
  return mprotect(reinterpret_cast<void*>(start), size, PROT_READ | PROT_WRITE) == 0 ? CUDA_SUCCESS
                                                                                     : CUDA_ERROR_UNKNOWN;
}

CUresult get_access(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
  if (!flags || !location) return CUDA_ERROR_INVALID_VALUE;
  const auto mapping = find_mapping(address);
  if (mapping == state().mappings.end()) return CUDA_ERROR_INVALID_VALUE;
  const auto& access = mapping->second.access;
  const auto found = access.find(is_host(*location) ? -1 : location->id);
  *flags = found == access.end() ? CU_MEM_ACCESS_FLAGS_PROT_NONE : found->second;
  return CUDA_SUCCESS;
}

CUresult granularity(size_t* out, const CUmemAllocationProp* prop, CUmemAllocationGranularity_flags) {
  if (!out || !prop) return CUDA_ERROR_INVALID_VALUE;
  *out = kGranularity;
  return CUDA_SUCCESS;
}

CUresult properties(CUmemAllocationProp* out, CUmemGenericAllocationHandle handle) {
  const std::shared_ptr<Physical> physical = find_physical(handle);
  if (!out || !physical) return CUDA_ERROR_INVALID_VALUE;
  *out = physical->prop;
  return CUDA_SUCCESS;
}

CUresult retain(CUmemGenericAllocationHandle* out, void* address) {
  const auto mapping = find_mapping(reinterpret_cast<CUdeviceptr>(address));
  if (!out || mapping == state().mappings.end()) return CUDA_ERROR_INVALID_VALUE;
  *out = add_vmm_handle(mapping->second.physical);
  return CUDA_SUCCESS;
}

}  // namespace

Physical::~Physical() {
  if (device >= 0) state().devices[static_cast<size_t>(device)]->card.give(size);
  if (file < 0) return;
  if (own_file) {
    close(file);
  } else if (shared) {
    return;  // another process may still map it
  } else if (fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(file_offset),
                       static_cast<off_t>(size))) {
    return;  // its pages stay with the host; nothing else changes
  }
}

CUmemGenericAllocationHandle add_vmm_handle(std::shared_ptr<Physical> physical) {
  if (const auto known = state().vmm_handles.find(physical->handle); known != state().vmm_handles.end()) {
    ++known->second.users;
    return physical->handle;
  }
  const CUmemGenericAllocationHandle handle = physical->handle = state().next_id++;
  state().vmm_handles[handle] = State::VmmHandle{std::move(physical), 1};
  return handle;
}

std::shared_ptr<Physical> find_physical(CUmemGenericAllocationHandle handle) {
  const auto found = state().vmm_handles.find(handle);
  return found == state().vmm_handles.end() ? nullptr : found->second.physical;
}

}  // namespace gpupool::sim

using namespace gpupool::sim;

CUresult cuMemAddressReserve(CUdeviceptr* out, size_t size, size_t alignment, CUdeviceptr wish,
                             unsigned long long flags) {
  return enter(Symbol::cuMemAddressReserve, reserve, out, size, alignment, wish, flags);
}
CUresult cuMemAddressFree(CUdeviceptr start, size_t size) {
  return enter(Symbol::cuMemAddressFree, address_free, start, size);
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* out, size_t size, const CUmemAllocationProp* prop,
                     unsigned long long flags) {
  return enter(Symbol::cuMemCreate, create, out, size, prop, flags);
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) { return enter(Symbol::cuMemRelease, release, handle); }
CUresult cuMemMap(CUdeviceptr start, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  return enter(Symbol::cuMemMap, map, start, size, offset, handle, flags);
}
CUresult cuMemUnmap(CUdeviceptr start, size_t size) { return enter(Symbol::cuMemUnmap, unmap, start, size); }
CUresult cuMemSetAccess(CUdeviceptr start, size_t size, const CUmemAccessDesc* descriptions, size_t count) {
  return enter(Symbol::cuMemSetAccess, set_access, start, size, descriptions, count);
}
CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
  return enter(Symbol::cuMemGetAccess, get_access, flags, location, address);
}
CUresult cuMemGetAllocationGranularity(size_t* out, const CUmemAllocationProp* prop,
                                       CUmemAllocationGranularity_flags option) {
  return enter(Symbol::cuMemGetAllocationGranularity, granularity, out, prop, option);
}
CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* out, CUmemGenericAllocationHandle handle) {
  return enter(Symbol::cuMemGetAllocationPropertiesFromHandle, properties, out, handle);
}
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* out, void* address) {
  return enter(Symbol::cuMemRetainAllocationHandle, retain, out, address);
}
