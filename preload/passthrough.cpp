// See passthrough.h.
#include "preload/passthrough.h"

#include <new>

namespace gpupool {

bool PassThrough::add(std::uint64_t address, const Block& block) {
  const std::lock_guard lock(mutex_);
  try {
    blocks_.insert_or_assign(address, block);
  } catch (const std::bad_alloc&) {
    return false;  // the program has its memory all the same
  }
  blocks_now_.store(blocks_.size(), std::memory_order_relaxed);
  live_ += block.bytes;
  shown_.live.store(live_, std::memory_order_relaxed);
  if (live_ > shown_.peak.load(std::memory_order_relaxed)) shown_.peak.store(live_, std::memory_order_relaxed);
  return true;
}

PassThrough::Block PassThrough::remove(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) return {};
  const Block block = found->second;
  live_ -= block.bytes;
  shown_.live.store(live_, std::memory_order_relaxed);
  blocks_.erase(found);
  blocks_now_.store(blocks_.size(), std::memory_order_relaxed);
  return block;
}

}  // namespace gpupool
