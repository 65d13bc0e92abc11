// Allocation from the driver's pools. A block freed on a stream is reused at once by the same stream, and by others
// after the stream has come to the free; if memory is short, another stream is made to wait for it (when the pool
// allows that).
#include "tests/simcuda/mempool.h"

#include <algorithm>

#include "tests/simcuda/call.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/memory.h"
#include "tests/simcuda/scheduler.h"
#include "tests/simcuda/simcuda.h"
#include "tests/simcuda/streams.h"

namespace gpupool::sim {
namespace {

// Frees whose operation has run make holes; beyond the release threshold these go back to the card.
void settle(CUmemoryPool pool) {
  std::erase_if(pool->pending, [&](const CUmemPoolHandle_st::Pending& block) {
    if (!is_done(block.op)) return false;
    pool->memory.give(block.start, block.size);
    return true;
  });
}

std::optional<CUdeviceptr> take_pending(CUmemoryPool pool, uint64_t size, Stream& stream, OpRef& behind,
                                        bool any_stream) {
  for (auto block = pool->pending.begin(); block != pool->pending.end(); ++block) {
    if (block->size < size || (block->stream != stream.id && !any_stream)) continue;
    const CUdeviceptr start = block->start;
    behind = block->op;
    block->start += size;
    block->size -= size;
    if (block->size == 0) pool->pending.erase(block);
    return start;
  }
  return std::nullopt;
}

std::optional<CUdeviceptr> grow_and_take(CUmemoryPool pool, uint64_t size) {
  const auto start = pool->memory.grow_and_take(size);
  for (uint64_t step : pool->memory.steps())
    state().regions.try_emplace(step, Region{PoolMemory::kStep, pool->devices});
  pool->reserved_high = std::max(pool->reserved_high, pool->memory.held());
  return start;
}

std::optional<CUdeviceptr> take(CUmemoryPool pool, uint64_t size, Stream& stream) {
  settle(pool);
  OpRef behind;
  if (const auto own = take_pending(pool, size, stream, behind, false)) return own;
  if (const auto hole = pool->memory.take(size)) return hole;
  if (const auto grown = grow_and_take(pool, size)) return grown;
  if (pool->reuse_internal_dependencies) {
    if (const auto foreign = take_pending(pool, size, stream, behind, true)) {
      Work wait;
      wait.name = "wait for a freed block";
      wait.ready = [behind] { return is_done(behind); };
      const OpRef op = enqueue(stream, std::move(wait));
      if (!op->done) add_wait(*op, behind);
      return foreign;
    }
  }
  // The last resort is to wait on the host, as the driver does.
  while (!pool->pending.empty()) {
    const OpRef oldest = pool->pending.front().op;
    wait_until_done(oldest);
    settle(pool);
    if (const auto hole = pool->memory.take(size)) return hole;
  }
  return std::nullopt;
}

void start_pool(CUmemPoolHandle_st& pool, Device& device) {
  pool.device = &device;
  pool.devices = {device.ordinal};
  pool.memory.open(device.arena, device.card.total(), pool.props.maxSize);
}

CUresult allocate(CUdeviceptr* out, size_t bytes, CUmemoryPool pool, CUstream handle) {
  Stream* stream = nullptr;
  if (const CUresult e = find_stream(handle, stream)) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (!pool) pool = current_pool(*stream->context->device);
  if (!state().pools.valid(pool) || pool->destroyed) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0) return *out = 0, CUDA_SUCCESS;
  if (stream->capture) return capture_alloc(*stream, *pool->device, out, bytes);
  if (stream->kind == StreamKind::kLegacy) {
    if (const CUresult e = refuse_implicit_dependency(*stream)) return e;
  }
  if (bytes > pool->device->card.total()) return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const std::optional<CUdeviceptr> start = take(pool, size, *stream);
  if (!start) return CUDA_ERROR_OUT_OF_MEMORY;
  add_allocation(*start, bytes, MemoryKind::kPooled, nullptr, pool->device->ordinal).pool = pool;
  pool->used += bytes;
  pool->used_high = std::max(pool->used_high, pool->used);
  Work work;
  work.name = "allocate";
  enqueue(*stream, std::move(work));
  *out = *start;
  return CUDA_SUCCESS;
}

CUresult allocate_from_current(CUdeviceptr* out, size_t bytes, CUstream handle) {
  return allocate(out, bytes, nullptr, handle);
}

CUresult allocate_from_pool(CUdeviceptr* out, size_t bytes, CUmemoryPool pool, CUstream handle) {
  return pool ? allocate(out, bytes, pool, handle) : CUDA_ERROR_INVALID_VALUE;
}

CUresult release(CUdeviceptr address, CUstream handle) {
  Stream* stream = nullptr;
  if (const CUresult e = find_stream(handle, stream)) return e;
  if (address == 0) return CUDA_SUCCESS;
  if (stream->capture) return capture_free(*stream, address);
  const auto found = state().allocations.find(address);
  if (found == state().allocations.end()) return CUDA_ERROR_INVALID_VALUE;
  const Allocation gone = found->second;
  const bool plain = gone.kind == MemoryKind::kPlain;
  if (!plain && gone.kind != MemoryKind::kPooled && gone.kind != MemoryKind::kGraph) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  work.name = "free";
  if (plain) work.run = [gone] { release_plain(gone); };
  OpRef op;
  if (const CUresult e = submit(handle, CU_GRAPH_NODE_TYPE_MEM_FREE, std::move(work), &op)) return e;
  state().allocations.erase(address);
  if (gone.kind != MemoryKind::kPooled) return CUDA_SUCCESS;
  const uint64_t size = (gone.size + kAlignment - 1) / kAlignment * kAlignment;
  gone.pool->used -= gone.size;
  gone.pool->pending.push_back({address, size, stream->id, op});
  if (gone.pool->destroyed) destroy_pool(gone.pool);
  return CUDA_SUCCESS;
}

}  // namespace

void return_to_pool(const Allocation& allocation) {
  const uint64_t size = (allocation.size + kAlignment - 1) / kAlignment * kAlignment;
  CUmemoryPool pool = allocation.pool;
  pool->used -= allocation.size;
  pool->memory.give(allocation.start, size);
  settle(pool);
  trim_pool(pool, pool->release_threshold);
  if (pool->destroyed) destroy_pool(pool);
}

void trim_pool(CUmemoryPool pool, uint64_t keep) {
  settle(pool);
  const std::set<uint64_t> before = pool->memory.steps();
  pool->memory.trim(keep);
  for (uint64_t step : before)
    if (!pool->memory.steps().count(step)) state().regions.erase(step);
}

CUmemoryPool make_pool(Device& device, const CUmemPoolProps& props) {
  const CUmemoryPool pool = state().pools.make();
  pool->props = props;
  start_pool(*pool, device);
  return pool;
}

CUmemoryPool default_pool(Device& device) {
  if (!device.default_pool) device.default_pool = make_pool(device, {});
  return device.default_pool;
}

CUmemoryPool current_pool(Device& device) { return device.current_pool ? device.current_pool : default_pool(device); }

void destroy_pool(CUmemoryPool pool) {
  pool->destroyed = true;
  for (const auto& device : state().devices) {
    if (device->current_pool == pool) device->current_pool = nullptr;
  }
  if (pool->used) return;
  // Blocks whose free is still queued keep their memory: the pool goes when they are done.
  for (const auto& block : std::vector<CUmemPoolHandle_st::Pending>(pool->pending)) wait_until_done(block.op);
  trim_pool(pool, 0);
  pool->memory.close();
  state().pools.drop(pool);
}

void trim_idle_pools(Device& device) {
  for (CUmemoryPool pool : std::vector<CUmemoryPool>(state().pools.all().begin(), state().pools.all().end())) {
    if (pool->device == &device) trim_pool(pool, pool->release_threshold);
  }
}

}  // namespace gpupool::sim

using namespace gpupool::sim;

void simcuda_empty_pools(void) {
  const std::lock_guard lock(big_lock());
  std::vector<CUdeviceptr> blocks;
  for (const auto& [start, allocation] : state().allocations) {
    if (allocation.kind == MemoryKind::kPooled) blocks.push_back(start);
  }
  for (CUdeviceptr start : blocks) remove_allocation(start);
  for (CUmemoryPool pool : std::vector<CUmemoryPool>(state().pools.all().begin(), state().pools.all().end())) {
    trim_pool(pool, 0);
    if (pool->memory.held() != 0 || !pool->pending.empty()) continue;
    pool->memory.close();
    Device& device = *pool->device;
    const CUmemPoolProps props = pool->props;
    *pool = CUmemPoolHandle_st{};
    pool->props = props;
    start_pool(*pool, device);
  }
}

CUresult cuMemAllocAsync(CUdeviceptr* out, size_t bytes, CUstream s) {
  return enter(Symbol::cuMemAllocAsync, allocate_from_current, out, bytes, legacy(s));
}
CUresult cuMemAllocAsync_ptsz(CUdeviceptr* out, size_t bytes, CUstream s) {
  return enter(Symbol::cuMemAllocAsync_ptsz, allocate_from_current, out, bytes, per_thread(s));
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t bytes, CUmemoryPool pool, CUstream s) {
  return enter(Symbol::cuMemAllocFromPoolAsync, allocate_from_pool, out, bytes, pool, legacy(s));
}
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* out, size_t bytes, CUmemoryPool pool, CUstream s) {
  return enter(Symbol::cuMemAllocFromPoolAsync_ptsz, allocate_from_pool, out, bytes, pool, per_thread(s));
}
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream s) {
  return enter(Symbol::cuMemFreeAsync, release, address, legacy(s));
}
CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream s) {
  return enter(Symbol::cuMemFreeAsync_ptsz, release, address, per_thread(s));
}
