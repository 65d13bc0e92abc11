// From what the user wrote to what one card can give. Pure function of its arguments.
// Rules, in this order; each that changes something says so in a Diagnostic (a note where only defaults are at odds):
//  1. strategy passthrough or off: no pool. auto_growth: nothing up front.
//  2. headroom that leaves no memory: the default, or an eighth of the card where that is too much as well.
//  3. max is at most total - headroom; the default of 100% means just that.
//  4. size is at most max. Equal is fine: both are cut to whole handles of 2 MiB alike, and never below one.
//  5. size is at most what is free - headroom now; the pool may grow to max later.
//  6. growth is at most max; a handle larger than max becomes auto.
#pragma once
#include "config/diagnostic.h"
#include "config/options.h"

namespace gpupool {

struct Resolution {
  ResolvedPool pool;
  Diagnostics diagnostics;
};

Resolution resolve(const PoolOptions& options, Bytes device_total, Bytes device_free);

}  // namespace gpupool
