// See memory_pools.h.
#include "preload/memory_pools.h"

#include <algorithm>
#include <new>

namespace gpupool {
namespace {

void raise_to(std::atomic<std::uint64_t>& mark, std::uint64_t value) {
  std::uint64_t seen = mark.load(std::memory_order_relaxed);
  while (seen < value && !mark.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

void MemoryPool::raise_marks(std::uint64_t used) {
  raise_to(used_high_, used);
  raise_to(reserved_, in_steps(used));
  raise_to(reserved_high_, in_steps(used));
}

void MemoryPool::shrink_to(std::uint64_t floor) {
  const std::uint64_t least = std::max(in_steps(used()), in_steps(floor));
  std::uint64_t seen = reserved_.load(std::memory_order_relaxed);
  while (seen > least && !reserved_.compare_exchange_weak(seen, least, std::memory_order_relaxed)) {
  }
}

std::uint64_t MemoryPool::reserved() {
  shrink_to(std::min(threshold_.load(std::memory_order_relaxed), reserved_.load(std::memory_order_relaxed)));
  return reserved_.load(std::memory_order_relaxed);
}

void MemoryPool::trim(std::uint64_t keep) { shrink_to(std::min(keep, reserved_.load(std::memory_order_relaxed))); }

MemoryPool* MemoryPools::adopt(PoolHandle handle, int device, PoolOrigin origin, std::uint64_t limit) {
  const std::lock_guard lock(mutex_);
  const unsigned count = count_.load(std::memory_order_relaxed);
  for (unsigned tag = 1; tag < count; ++tag) {
    MemoryPool* known = of_tag(static_cast<std::uint16_t>(tag));
    if (known->handle() == handle && !known->destroyed()) return known;
  }
  if (count == kMostPools) return nullptr;
  auto* pool = new (std::nothrow) MemoryPool(handle, device, origin, limit, static_cast<std::uint16_t>(count));
  if (!pool) return nullptr;
  pools_[count].store(pool, std::memory_order_release);
  if (!pool->limited()) accounts_.open(pool->tag(), pool->account());
  count_.store(count + 1, std::memory_order_release);
  return pool;
}

MemoryPool* MemoryPools::find(PoolHandle handle) {
  // The newest first: a destroyed pool's handle may name another pool by now.
  for (unsigned tag = count_.load(std::memory_order_acquire); tag-- > 1;) {
    MemoryPool* pool = of_tag(static_cast<std::uint16_t>(tag));
    if (pool->handle() == handle) return pool->destroyed() ? nullptr : pool;
  }
  return nullptr;
}

void MemoryPools::destroy(MemoryPool& pool) {
  pool.destroy();
  forget_current();
}

void MemoryPools::leave_behind(std::uint64_t address, std::uint16_t tag, std::uint64_t bytes) try {
  const std::lock_guard lock(mutex_);
  left_behind_[address] = {tag, bytes};
} catch (const std::bad_alloc&) {
  return;  // its free will be refused
}

bool MemoryPools::free_left_behind(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto found = left_behind_.find(address);
  if (found == left_behind_.end()) return false;
  if (MemoryPool* pool = of_tag(found->second.tag)) pool->give_back(found->second.bytes);
  left_behind_.erase(found);
  return true;
}

void MemoryPools::set_current(int device, MemoryPool* pool) {
  if (device >= 0 && device < kMostDevices) current_[device].store(pool ? pool : foreign(), std::memory_order_release);
}

void MemoryPools::forget_current() {
  for (auto& current : current_) current.store(nullptr, std::memory_order_release);
}

}  // namespace gpupool
