// The smallest pool that serves a trace: replay with pool.size and pool.max at the same value, and bisection over that
// value.
#pragma once
#include "cli/replay/play.h"

namespace gpupool::cli {

struct Smallest {
  Bytes size = 0;
  Bytes peak_live = 0;
  Bytes handle = 0;
  double waste() const { return size > peak_live ? 1.0 - double(peak_live) / double(size) : 0.0; }
};

/// `pool` as resolved; its strategy, size and max are what is looked for. Every request is served by the pool of the
/// size found.
Smallest smallest_pool(const Trace& trace, ResolvedPool pool);

}  // namespace gpupool::cli
