// See pool_memory.h.
#include "tests/simcuda/pool_memory.h"

#include <vector>

namespace gpupool::sim {
namespace {

constexpr uint64_t in_steps(uint64_t bytes) {
  return (bytes + PoolMemory::kStep - 1) / PoolMemory::kStep * PoolMemory::kStep;
}

}  // namespace

void PoolMemory::open(Arena& arena, uint64_t card_bytes, uint64_t most) {
  arena_ = &arena;
  size_ = in_steps(card_bytes);
  most_ = most ? in_steps(most) : size_;
}

void PoolMemory::close() {
  trim(0);
  if (start_) arena_->free_addresses(start_, size_);
  start_ = 0;
}

std::optional<uint64_t> PoolMemory::take(uint64_t size) {
  const std::optional<uint64_t> start = holes_.take(size, kAlignment);
  if (start) addresses_.take_exactly(*start, size);
  return start;
}

std::optional<uint64_t> PoolMemory::grow_and_take(uint64_t size) {
  if (!start_) {
    const std::optional<uint64_t> range = arena_->reserve(size_, kStep);
    if (!range) return std::nullopt;
    start_ = *range;
    addresses_.give(start_, size_);
  }
  const std::optional<uint64_t> start = addresses_.take(size, kAlignment);
  if (!start) return std::nullopt;
  std::vector<uint64_t> missing;
  for (uint64_t step = start_ + (*start - start_) / kStep * kStep; step < *start + size; step += kStep)
    if (!steps_.count(step)) missing.push_back(step);
  if (held() + missing.size() * kStep > most_ || !arena_->fill(missing.size() * kStep)) {
    addresses_.give(*start, size);
    return std::nullopt;
  }
  for (uint64_t step : missing) {
    steps_.insert(step);
    holes_.give(step, kStep);
  }
  holes_.take_exactly(*start, size);
  return start;
}

void PoolMemory::give(uint64_t start, uint64_t size) {
  holes_.give(start, size);
  addresses_.give(start, size);
}

void PoolMemory::trim(uint64_t keep) {
  for (auto step = steps_.end(); step != steps_.begin() && held() > keep && held() - keep >= kStep;) {
    --step;
    if (!holes_.is_free(*step, kStep)) continue;
    holes_.take_exactly(*step, kStep);
    arena_->empty(*step, kStep);
    step = steps_.erase(step);
  }
}

}  // namespace gpupool::sim
