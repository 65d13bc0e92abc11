// The smallest pool that serves a trace: replay with pool.size and pool.max at the same value, and bisection over that
// value. Best fit is not monotone: a pool may serve what one a handle larger does not, because blocks lie elsewhere. So
// the sizes below what bisection finds are tried as well, down to the live peak, or kMostBelow of them.
#pragma once
#include "cli/replay/play.h"

namespace gpupool::cli {

struct Smallest {
  Bytes size = 0;
  Bytes peak_live = 0;
  Bytes handle = 0;
  double waste() const { return size > peak_live ? 1.0 - double(peak_live) / double(size) : 0.0; }
};

/// Sizes that are tried below the one that bisection finds.
inline constexpr Bytes kMostBelow = 256;

/// `pool` as resolved; its strategy, size and max are what is looked for. Every request is served by the pool of the
/// size found.
Smallest smallest_pool(const Trace& trace, ResolvedPool pool);

}  // namespace gpupool::cli
