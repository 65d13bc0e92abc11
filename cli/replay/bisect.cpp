// See bisect.h.
#include "cli/replay/bisect.h"

#include <algorithm>

#include "cli/console.h"
#include "config/text.h"

namespace gpupool::cli {

Smallest smallest_pool(const Trace& trace, ResolvedPool pool) {
  const Bytes card = pool.total;
  pool.headroom = 0;
  const auto set = [&pool](Strategy strategy, Bytes size, Bytes most) {
    pool.options.strategy = strategy;
    pool.size = size;
    pool.max = most;
  };
  set(Strategy::auto_growth, 0, card);
  const Outcome grown = play_pool(trace, pool);
  if (grown.oom != 0) {
    throw Problem(Exit::input, escaped(trace.name, trace.name.size()) + ": " + std::to_string(grown.oom) +
                                   " requests do not fit even on a card of " + readable(card));
  }
  const Bytes unit = std::max(pool.handle, kHandleGranularity);
  const auto units = [unit](Bytes bytes) { return (bytes + unit - 1) / unit; };
  // Below the live peak nothing fits; what auto_growth took is nearly always enough, and doubled until it is.
  Bytes low = units(grown.peak_live_bytes);
  Bytes high = std::max(low, units(grown.reserved_peak_bytes));
  const Bytes least = low;
  const auto serves = [&](Bytes count) {
    set(Strategy::best_fit, count * unit, count * unit);
    return pool_serves(trace, pool);
  };
  while (!serves(high) && high * unit < card) low = high + 1, high *= 2;
  while (low < high) {
    const Bytes middle = low + (high - low) / 2;
    serves(middle) ? high = middle : low = middle + 1;
  }
  Bytes smallest = std::max(least, high - std::min(high, kMostBelow));
  while (smallest < high && !serves(smallest)) ++smallest;
  return {smallest * unit, grown.peak_live_bytes, pool.handle};
}

}  // namespace gpupool::cli
