// Questions about memory, answered for a block of the pool as the driver answers them for memory of cuMemAlloc: free
// memory, the range and the attributes of an address, what may be exported. The same for blocks that another process
// has exported to this one. The driver is asked first wherever its own checks of the arguments matter.
#include "preload/real.h"

#include <algorithm>
#include <atomic>
#include <new>

#include "config/load.h"
#include "config/resolve.h"
#include "device/card.h"
#include "device/context.h"
#include "preload/log.h"
#include "preload/neighbours.h"
#include "preload/serve.h"

namespace gpupool::hook {
namespace {

// The home of an address, unless the call comes from inside one of ours.
Home* home_at(const Guard& guard, CUdeviceptr address) {
  return guard.nested() ? nullptr : process().registry.at(address);
}

// The live block that holds `address`; as to the driver, what was rounded up to is none of it.
bool find_block(const Home& home, CUdeviceptr address, BlockInfo& block) {
  return home.tape()->find(address, block) && address < block.address + block.requested;
}

// The sum over a device's pools of what their holes add to "free" and of what their blocks hold.
struct Pools {
  std::uint64_t reserved = 0;
  std::uint64_t holes = 0;
  std::uint64_t live = 0;
  std::uint64_t max = 0;
  bool known = false;  // a context has asked for memory, and got a pool or none
};

Pools pools_of(CUdevice device) {
  Pools sum;
  process().registry.each([&](Home& home) {
    if (home.device() != device || !home.alive()) return;
    sum.known = true;
    if (!home.serves()) return;
    sum.reserved += home.tape()->stats().reserved.current();
    sum.holes += home.tape()->free_bytes();
    const Stats& stats = home.tape()->stats();
    sum.live += stats.live.current() - std::min(stats.live.current(), stats.overflow_live.current());
    sum.max = std::max(sum.max, home.resolved().max);
  });
  return sum;
}

// What the pool would be held to that the next request makes: frameworks size their own caches before they ask for
// anything. 0: it would make none.
std::uint64_t max_before_pool(CUdevice device, std::uint64_t free, std::uint64_t total) try {
  return resolve(pool_options_for(setup().options, device, uuid_text(setup().api, device)), total, free).pool.max;
} catch (const std::bad_alloc&) {
  return 0;
}

// Ids of different pools must differ too, and from the driver's own, which count up from 1.
unsigned long long buffer_id(const Home& home, const BlockInfo& block) {
  return (std::uint64_t{process().registry.number_of(home)} + 1) << 48 | block.buffer_id;
}

// The driver thinks of the handles and the reservation below the block; a program thinks of its block.
void correct(CUpointer_attribute attribute, const Home& home, const BlockInfo& block, void* answer) {
  constexpr std::uint64_t kPiece = kHandleGranularity;
  const std::uint64_t mapping = block.address / kPiece * kPiece;
  const auto put = [answer](auto value) { *static_cast<decltype(value)*>(answer) = value; };
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return put(block.stream_ordered ? CUcontext{} : home.context());
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return put(buffer_id(home, block));
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put(CUdeviceptr{block.address});
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put(std::size_t{block.requested});
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return put(CUdeviceptr{mapping});
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return put(std::size_t{(block.address + block.bytes + kPiece - 1) / kPiece * kPiece - mapping});
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: {
      const MemoryPool* pool = block.stream_ordered ? process().pools.of_tag(block.tag) : nullptr;
      return put(pool ? reinterpret_cast<CUmemoryPool>(pool->handle()) : CUmemoryPool{});
    }
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return put(unsigned{0});  // the handles below are not the program's to export
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return put(!block.stream_ordered && home.shareable());  // one byte; the driver has written the others, if any
    default:
      return;  // the same for every memory of the device, or honest: what only cuMemAlloc memory can do
  }
}

// A block that another process has exported to this one.
bool imported_at(const Guard& guard, CUdeviceptr address, ImportedBlock& block) {
  return !guard.nested() && process().imports.any() && process().imports.find(address, block);
}

void correct(CUpointer_attribute attribute, const ImportedBlock& block, void* answer) {
  const auto put = [answer](auto value) { *static_cast<decltype(value)*>(answer) = value; };
  if (attribute == CU_POINTER_ATTRIBUTE_CONTEXT) put(block.context);
  if (attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR) put(block.address);
  if (attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE) put(std::size_t{block.requested});
}

// Once: whoever asks for it has a network card or another device read the memory, and may take the refusal badly.
void say_sync_memops() {
  static std::atomic<bool> said{false};
  if (said.exchange(true, std::memory_order_relaxed)) return;
  log::warn("SYNC_MEMOPS is not to be had for mapped memory; pool.backing=arena has it");
}

// Refuses what native refuses for memory that was not made by the calls of virtual memory management.
template <class Ask>
CUresult not_for_blocks(CUdeviceptr address, Ask ask) {
  const Guard guard;
  ImportedBlock imported;
  return home_at(guard, address) || imported_at(guard, address, imported) ? CUDA_ERROR_INVALID_VALUE : ask();
}

}  // namespace

CUresult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  const Guard guard;
  CUdevice device = 0;
  const bool corrected = !guard.nested() && setup().options.limit.report && free && total;
  if (!corrected || setup().api.cuCtxGetDevice(&device) != CUDA_SUCCESS) return real::cuMemGetInfo_v2(free, total);
  // A growth between the two questions would count its memory twice or never: ask until none falls between.
  constexpr int kMostLooks = 8;
  Pools pools = pools_of(device);
  for (int look = 0; look < kMostLooks; ++look) {
    const CUresult result = real::cuMemGetInfo_v2(free, total);
    if (result != CUDA_SUCCESS) return result;
    const std::uint64_t reserved_before = pools.reserved;
    pools = pools_of(device);
    if (pools.reserved == reserved_before) break;
  }
  if (!pools.known) pools.max = max_before_pool(device, *free, *total);
  const std::uint64_t most = pools.max != 0 ? pools.max : *total;  // without a pool there is no limit of ours
  const std::uint64_t allowed = most > pools.live ? most - pools.live : 0;
  std::uint64_t seen = *free + pools.holes;
  if (seen < allowed) seen += process().neighbours.free_on(guard, uuid_text(setup().api, device));
  *free = std::min<std::uint64_t>({seen, allowed, *total});
  return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* size, CUdeviceptr address) {
  const Guard guard;
  Home* home = home_at(guard, address);
  ImportedBlock imported;
  const bool is_imported = !home && imported_at(guard, address, imported);
  const CUresult result = real::cuMemGetAddressRange_v2(base, size, address);
  // Inside the pool the driver finds something below every block, and what it finds wrong is not the address.
  if ((!home && !is_imported) || (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_FOUND)) return result;
  BlockInfo block{.address = imported.address, .requested = imported.requested};
  const bool found = !home || find_block(*home, address, block);
  if (base) *base = found ? block.address : 0;
  if (size) *size = found ? block.requested : 0;
  return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  const Guard guard;
  Home* home = home_at(guard, address);
  BlockInfo block;
  if (home && !find_block(*home, address, block)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = real::cuPointerGetAttribute(data, attribute, address);
  if (result != CUDA_SUCCESS) return result;
  if (home) {
    correct(attribute, *home, block, data);
    if (attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS) home->tape()->share(block.address, Sharing::kFixed);
  } else if (ImportedBlock imported; imported_at(guard, address, imported)) {
    correct(attribute, imported, data);
  }
  return result;
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data, CUdeviceptr address) {
  const Guard guard;
  Home* home = home_at(guard, address);
  BlockInfo block;
  // A freed address has the answers of one that never was.
  if (home && !find_block(*home, address, block)) return real::cuPointerGetAttributes(count, attributes, data, 0);
  const CUresult result = real::cuPointerGetAttributes(count, attributes, data, address);
  if (result != CUDA_SUCCESS) return result;
  ImportedBlock imported;
  const bool is_imported = !home && imported_at(guard, address, imported);
  for (unsigned i = 0; i < count; ++i) {
    if (home) correct(attributes[i], *home, block, data[i]);
    if (home && attributes[i] == CU_POINTER_ATTRIBUTE_P2P_TOKENS) home->tape()->share(block.address, Sharing::kFixed);
    if (is_imported) correct(attributes[i], imported, data[i]);
  }
  return result;
}

CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  const Guard guard;
  Home* home = home_at(guard, address);
  BlockInfo block;
  if (home && !find_block(*home, address, block)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = real::cuPointerSetAttribute(value, attribute, address);
  if (home && result == CUDA_ERROR_NOT_SUPPORTED && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) say_sync_memops();
  return result;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  return not_for_blocks(reinterpret_cast<CUdeviceptr>(address),
                        [&] { return real::cuMemRetainAllocationHandle(handle, address); });
}

CUresult cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  return not_for_blocks(address, [&] { return real::cuMemUnmap(address, bytes); });
}

CUresult cuMemSetAccess(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* access, std::size_t count) {
  return not_for_blocks(address, [&] { return real::cuMemSetAccess(address, bytes, access, count); });
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
  return not_for_blocks(address, [&] { return real::cuMemGetAccess(flags, location, address); });
}

CUresult cuMemAddressFree(CUdeviceptr address, std::size_t bytes) {
  return not_for_blocks(address, [&] { return real::cuMemAddressFree(address, bytes); });
}

CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr address, std::size_t bytes, CUmemRangeHandleType type,
                                       unsigned long long flags) {
  const Guard guard;
  Home* home = home_at(guard, address);
  if (!home) return real::cuMemGetHandleForAddressRange(handle, address, bytes, type, flags);
  // A program rounds to pages, so the range may begin in a neighbour, or in nothing. One that only asks whether it
  // could have a descriptor leaves no trace.
  if (!home->tape()->share(address, Sharing::kNone, bytes)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = real::cuMemGetHandleForAddressRange(handle, address, bytes, type, flags);
  if (result == CUDA_SUCCESS) home->tape()->share(address, Sharing::kReferenced, bytes);
  return result;
}

}  // namespace gpupool::hook
