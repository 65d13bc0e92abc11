#include "pool/tape_options.h"

#include <algorithm>

namespace gpupool {
namespace {

// Addresses are plentiful: gaps left by moved handles need not be found again before the tape's end is reached.
constexpr Bytes kLeastAddressSpace = 1_TiB;
constexpr Bytes kAddressesPerByte = 8;

ReusePolicy policy_of(ReuseKind reuse) {
  switch (reuse) {
    case ReuseKind::fence:
      return ReusePolicy::kFence;
    case ReuseKind::sync:
      return ReusePolicy::kSync;
    case ReuseKind::quiescent:
      return ReusePolicy::kQuiescent;
  }
  return ReusePolicy::kFence;
}

}  // namespace

TapeOptions tape_options_for(const ResolvedPool& pool) {
  const PoolOptions& chosen = pool.options;
  TapeOptions options;
  options.address_space = std::max(kLeastAddressSpace, pool.total * kAddressesPerByte);
  options.size = pool.size;
  options.max = pool.max;
  options.headroom = pool.headroom;
  options.growth_bytes = chosen.growth.step;
  options.growth_factor = chosen.growth.is_factor() ? (chosen.growth.factor_thousandths - 1000) / 1000.0 : 0;
  options.exact_growth = chosen.strategy == Strategy::auto_growth;
  options.handle = pool.handle;
  options.max_split = chosen.max_split;
  options.reuse = policy_of(chosen.reuse);
  options.reclaim = chosen.reclaim;
  options.overflow = pool.overflow;
  options.red_zone = chosen.guard ? kRedZoneBytes : 0;
  return options;
}

}  // namespace gpupool
