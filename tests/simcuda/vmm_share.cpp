// VMM memory between processes: the shareable name is a descriptor of the card's file, opened anew, whose position says
// which part of it the handle is. Imported twice in one process it is the same physical memory. Also dma-buf
// descriptors, which here only keep the memory's file open.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "tests/simcuda/call.h"
#include "tests/simcuda/vmm.h"

namespace gpupool::sim {
namespace {

// Where in which file memory lies.
using Spot = std::pair<ino_t, uint64_t>;
std::map<Spot, std::weak_ptr<Physical>>& by_spot() {
  static auto* const instance = new std::map<Spot, std::weak_ptr<Physical>>;
  return *instance;
}

// Begin and size in one number that fits a file's position.
constexpr unsigned kSizeBits = 24;
off_t position_of(const Physical& physical) {
  return static_cast<off_t>(physical.file_offset / kGranularity << kSizeBits | physical.size / kGranularity);
}
uint64_t begin_of(off_t position) {
  return static_cast<uint64_t>(position) / (uint64_t{1} << kSizeBits) * kGranularity;
}
uint64_t size_of(off_t position) {
  return (static_cast<uint64_t>(position) & ((uint64_t{1} << kSizeBits) - 1)) * kGranularity;
}

// The card is told by the name that vmm.cpp gave the file; false for a file that is not ours.
bool card_of_file(int file, int& device) {
  char path[40];
  char name[64] = {};
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  if (readlink(path, name, sizeof name - 1) < 0) return false;
  const char* tag = std::strstr(name, "simcuda-card:");
  if (!tag) return false;
  device = std::atoi(tag + std::strlen("simcuda-card:"));
  return true;
}

CUresult export_handle(void* out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                       unsigned long long flags) {
  const std::shared_ptr<Physical> physical = find_physical(handle);
  if (!out || !physical || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
  if (!(physical->prop.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
    return CUDA_ERROR_INVALID_VALUE;
  struct stat about {};
  char path[40];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", physical->file);
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0 || fstat(file, &about) != 0 || lseek(file, position_of(*physical), SEEK_SET) < 0)
    return CUDA_ERROR_OPERATING_SYSTEM;
  by_spot()[{about.st_ino, physical->file_offset}] = physical;
  physical->shared = true;
  std::memcpy(out, &file, sizeof file);
  return CUDA_SUCCESS;
}

CUresult import_handle(CUmemGenericAllocationHandle* out, void* shareable, CUmemAllocationHandleType type) {
  if (!out || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
  const int given = static_cast<int>(reinterpret_cast<intptr_t>(shareable));
  struct stat about {};
  int device = -1;
  const off_t position = lseek(given, 0, SEEK_CUR);
  if (position <= 0 || fstat(given, &about) != 0 || !card_of_file(given, device)) return CUDA_ERROR_INVALID_VALUE;
  std::weak_ptr<Physical>& known = by_spot()[{about.st_ino, begin_of(position)}];
  std::shared_ptr<Physical> physical = known.lock();
  if (!physical) {
    physical = std::make_shared<Physical>();
    physical->size = size_of(position);
    physical->file_offset = begin_of(position);
    physical->prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    physical->prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    physical->prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    physical->prop.location.id = device;
    physical->file = dup(given);
    physical->own_file = true;
    physical->device = -1;  // the exporter's card pays for it
    known = physical;
  }
  *out = add_vmm_handle(std::move(physical));
  return CUDA_SUCCESS;
}

CUresult handle_for_range(void* out, CUdeviceptr start, size_t size, CUmemRangeHandleType type, unsigned long long) {
  if (!out || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD) return CUDA_ERROR_INVALID_VALUE;
  int file = -1;
  if (const auto mapping = find_mapping(start); mapping != state().mappings.end()) {
    if (reachable(start, size, mapping->second.physical->device, nullptr)) file = mapping->second.physical->file;
  } else if (const Allocation* found = find_allocation(start); found && found->kind == MemoryKind::kPlain) {
    if (size <= found->start + found->size - start)
      file = state().devices[static_cast<size_t>(found->device)]->arena.file();
  }
  if (file < 0) return CUDA_ERROR_INVALID_VALUE;
  const int copy = dup(file);
  std::memcpy(out, &copy, sizeof copy);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace gpupool::sim

using namespace gpupool::sim;

CUresult cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                                      unsigned long long flags) {
  return enter(Symbol::cuMemExportToShareableHandle, export_handle, out, handle, type, flags);
}
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* out, void* shareable,
                                        CUmemAllocationHandleType type) {
  return enter(Symbol::cuMemImportFromShareableHandle, import_handle, out, shareable, type);
}
CUresult cuMemGetHandleForAddressRange(void* out, CUdeviceptr start, size_t size, CUmemRangeHandleType type,
                                       unsigned long long flags) {
  return enter(Symbol::cuMemGetHandleForAddressRange, handle_for_range, out, start, size, type, flags);
}
