// cuMemAlloc and cuMemFree, arrays (accounting only), and what the card says of itself. A free waits for all work of
// the context, as measured.
#include "tests/simcuda/memory.h"

#include <unordered_map>

#include "tests/simcuda/call.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/contexts.h"
#include "tests/simcuda/mempool.h"
#include "tests/simcuda/scheduler.h"

namespace gpupool::sim {
namespace {

constexpr uint64_t kPitch = 512;

CUresult allocate(CUdeviceptr* out, size_t bytes) {
  Context* context = nullptr;
  if (const CUresult e = current_context(context)) return e;
  if (!out || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = refuse_unsafe_call()) return e;
  return allocate_plain(*context, bytes, MemoryKind::kPlain, *out);
}

CUresult allocate_pitch(CUdeviceptr* out, size_t* pitch, size_t width, size_t height, unsigned element) {
  if (!out || !pitch || width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
  if (element != 4 && element != 8 && element != 16) return CUDA_ERROR_INVALID_VALUE;
  if (width > SIZE_MAX - kPitch) return CUDA_ERROR_INVALID_VALUE;
  const size_t row = (width + kPitch - 1) / kPitch * kPitch;
  if (height > SIZE_MAX / row) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = allocate(out, row * height);
  if (result == CUDA_SUCCESS) *pitch = row;
  return result;
}

CUresult release(CUdeviceptr address) {
  Context* current = nullptr;
  if (address == 0) return CUDA_SUCCESS;
  const auto found = state().allocations.find(address);
  // A thread without a context frees as any other, as was measured.
  if (const CUresult e = current_context(current); e != CUDA_SUCCESS && e != CUDA_ERROR_INVALID_CONTEXT) return e;
  if (found == state().allocations.end()) return CUDA_ERROR_INVALID_VALUE;
  const MemoryKind kind = found->second.kind;
  if (kind == MemoryKind::kHost || kind == MemoryKind::kRegistered || kind == MemoryKind::kImported)
    return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = refuse_unsafe_call()) return e;
  Context* owner = found->second.context ? found->second.context : current;
  if (owner) wait_for_context(*owner);
  const CUresult error = owner ? root_of(*owner).error : CUDA_SUCCESS;
  // The wait may have let the program run: the allocation may be gone.
  if (!state().allocations.count(address)) return CUDA_ERROR_INVALID_VALUE;
  if (error != CUDA_SUCCESS) return error;
  remove_allocation(address);
  return CUDA_SUCCESS;
}

CUresult get_info(size_t* free, size_t* total) {
  Context* context = nullptr;
  if (const CUresult e = current_context(context)) return e;
  if (!free || !total) return CUDA_ERROR_INVALID_VALUE;
  *free = context->device->card.total() - context->device->card.used();
  *total = context->device->card.total();
  return CUDA_SUCCESS;
}

CUresult get_address_range(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
  Context* context = nullptr;
  if (const CUresult e = current_context(context)) return e;
  if (const Allocation* found = find_allocation(address)) {
    if (base) *base = found->start;
    if (size) *size = found->size;
    return CUDA_SUCCESS;
  }
  // Of VMM memory this is the handle's mapping, not the reservation.
  const auto mapping = find_mapping(address);
  if (mapping == state().mappings.end()) {
    if (base) *base = 0;
    if (size) *size = 0;
    return CUDA_ERROR_NOT_FOUND;
  }
  if (base) *base = mapping->first;
  if (size) *size = mapping->second.size;
  return CUDA_SUCCESS;
}

// Arrays: opaque, so only their bytes matter.
struct Array {
  Device* device;
  uint64_t bytes;
};
std::unordered_map<void*, Array>& arrays() {
  static auto* const instance = new std::unordered_map<void*, Array>;
  return *instance;
}

uint64_t format_bytes(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    default:
      return 4;
  }
}

CUresult make_array(void** out, uint64_t elements, CUarray_format format, unsigned channels) {
  Context* context = nullptr;
  if (const CUresult e = current_context(context)) return e;
  if (!out || channels == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = refuse_unsafe_call()) return e;
  const uint64_t bytes = (elements * format_bytes(format) * channels + kGranularity - 1) / kGranularity * kGranularity;
  if (!context->device->card.take(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = new char;
  arrays()[*out] = Array{context->device, bytes};
  return CUDA_SUCCESS;
}

CUresult create_array(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* d) {
  if (!d) return CUDA_ERROR_INVALID_VALUE;
  return make_array(reinterpret_cast<void**>(out), d->Width * (d->Height ? d->Height : 1), d->Format, d->NumChannels);
}

uint64_t elements(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  return d.Width * (d.Height ? d.Height : 1) * (d.Depth ? d.Depth : 1);
}

CUresult create_array_3d(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* d) {
  return d ? make_array(reinterpret_cast<void**>(out), elements(*d), d->Format, d->NumChannels)
           : CUDA_ERROR_INVALID_VALUE;
}

CUresult create_mipmapped(CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR* d, unsigned) {
  // All levels together are at most twice the first.
  return d ? make_array(reinterpret_cast<void**>(out), 2 * elements(*d), d->Format, d->NumChannels)
           : CUDA_ERROR_INVALID_VALUE;
}

CUresult drop_array(void* array) {
  const auto found = arrays().find(array);
  if (found == arrays().end()) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult e = refuse_unsafe_call()) return e;
  found->second.device->card.give(found->second.bytes);
  delete static_cast<char*>(array);
  arrays().erase(found);
  return CUDA_SUCCESS;
}

CUresult destroy_array(CUarray array) { return drop_array(array); }
CUresult destroy_mipmapped(CUmipmappedArray array) { return drop_array(array); }

CUresult advise(CUdeviceptr, size_t, CUmem_advise, CUmemLocation) { return CUDA_SUCCESS; }
CUresult prefetch(CUdeviceptr, size_t, CUmemLocation, unsigned, CUstream) { return CUDA_SUCCESS; }

}  // namespace

std::set<int> all_devices() {
  std::set<int> all;
  for (const auto& device : state().devices) all.insert(device->ordinal);
  return all;
}

Allocation& add_allocation(CUdeviceptr start, uint64_t size, MemoryKind kind, Context* context, int device) {
  Allocation& made = state().allocations[start];
  made = Allocation{};
  made.start = start;
  made.size = size;
  made.kind = kind;
  made.context = context ? &root_of(*context) : nullptr;
  made.device = device;
  made.buffer_id = state().next_id++;
  return made;
}

CUresult allocate_plain(Context& context, uint64_t bytes, MemoryKind kind, CUdeviceptr& out) {
  const std::optional<uint64_t> start = context.device->arena.allocate(bytes);
  if (!start) return CUDA_ERROR_OUT_OF_MEMORY;
  add_allocation(*start, bytes, kind, &context, context.device->ordinal);
  state().regions[*start] = Region{Arena::allocated_bytes(bytes), {context.device->ordinal}};
  out = *start;
  return CUDA_SUCCESS;
}

void release_plain(const Allocation& gone) {
  state().regions.erase(gone.start);
  state().devices[static_cast<size_t>(gone.device)]->arena.release(gone.start, gone.size);
}

void remove_allocation(CUdeviceptr start) {
  const auto found = state().allocations.find(start);
  const Allocation gone = found->second;
  state().allocations.erase(found);
  switch (gone.kind) {
    case MemoryKind::kPlain:
      release_plain(gone);
      break;
    case MemoryKind::kPooled:
      return_to_pool(gone);
      break;
    case MemoryKind::kManaged:
    case MemoryKind::kHost:
      state().regions.erase(start);
      unmap_host(gone);
      break;
    case MemoryKind::kImported:
      state().regions.erase(start);
      unmap_imported(gone);
      break;
    case MemoryKind::kRegistered:
      state().regions.erase(start);
      break;
    case MemoryKind::kGraph:
      break;  // the graph keeps it
  }
}

void release_memory_of(Context& context) {
  std::vector<CUdeviceptr> mine;
  for (const auto& [start, allocation] : state().allocations) {
    if (allocation.context == &context) mine.push_back(start);
  }
  for (CUdeviceptr start : mine) remove_allocation(start);
}

}  // namespace gpupool::sim

using namespace gpupool::sim;

CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t bytes) { return enter(Symbol::cuMemAlloc_v2, allocate, out, bytes); }
CUresult cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width, size_t height, unsigned element) {
  return enter(Symbol::cuMemAllocPitch_v2, allocate_pitch, out, pitch, width, height, element);
}
CUresult cuMemFree_v2(CUdeviceptr address) { return enter(Symbol::cuMemFree_v2, release, address); }
CUresult cuMemGetInfo_v2(size_t* free, size_t* total) { return enter(Symbol::cuMemGetInfo_v2, get_info, free, total); }
CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
  return enter(Symbol::cuMemGetAddressRange_v2, get_address_range, base, size, address);
}
CUresult cuArrayCreate_v2(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* d) {
  return enter(Symbol::cuArrayCreate_v2, create_array, out, d);
}
CUresult cuArray3DCreate_v2(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* d) {
  return enter(Symbol::cuArray3DCreate_v2, create_array_3d, out, d);
}
CUresult cuArrayDestroy(CUarray array) { return enter(Symbol::cuArrayDestroy, destroy_array, array); }
CUresult cuMipmappedArrayCreate(CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR* d, unsigned levels) {
  return enter(Symbol::cuMipmappedArrayCreate, create_mipmapped, out, d, levels);
}
CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  return enter(Symbol::cuMipmappedArrayDestroy, destroy_mipmapped, array);
}
CUresult cuMemAdvise_v2(CUdeviceptr at, size_t size, CUmem_advise advice, CUmemLocation where) {
  return enter(Symbol::cuMemAdvise_v2, advise, at, size, advice, where);
}
CUresult cuMemPrefetchAsync_v2(CUdeviceptr at, size_t size, CUmemLocation where, unsigned flags, CUstream s) {
  return enter(Symbol::cuMemPrefetchAsync_v2, prefetch, at, size, where, flags, legacy(s));
}
CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr at, size_t size, CUmemLocation where, unsigned flags, CUstream s) {
  return enter(Symbol::cuMemPrefetchAsync_v2_ptsz, prefetch, at, size, where, flags, per_thread(s));
}
