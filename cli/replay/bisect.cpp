// See bisect.h.
#include "cli/replay/bisect.h"

#include <algorithm>
#include <vector>

#include "cli/console.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

// Of one trace, seeds from 0, the recorded order, to `last`. Which one a size did not serve is tried first at the next.
struct Orders {
  const Trace& trace;
  std::uint64_t last = std::clamp(kEventsPlayed / trace.events.size(), kFewestOrders, kMostOrders);
  std::uint64_t first = 0;

  bool served_by(const ResolvedPool& pool) {
    for (std::uint64_t tried = 0; tried <= last; ++tried) {
      const std::uint64_t seed = (first + tried) % (last + 1);
      if (pool_serves(trace, pool, Order(seed))) continue;
      first = seed;
      return false;
    }
    return true;
  }
};

}  // namespace

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

Bytes steady_pool(std::span<const Trace> traces, ResolvedPool pool, Bytes least, Bytes step) {
  std::vector<Orders> orders;
  for (const Trace& trace : traces) orders.push_back({trace});
  pool.headroom = 0;
  pool.options.strategy = Strategy::best_fit;
  Bytes size = (least + step - 1) / step * step;
  for (unsigned steps = 0;;) {
    pool.size = pool.max = std::min(size, pool.total);
    const bool serves = std::ranges::all_of(orders, [&](Orders& each) { return each.served_by(pool); });
    if (serves || pool.size == pool.total) return pool.size;
    size += step;
    if (++steps % kEqualSteps == 0) step *= 2;
  }
}

}  // namespace gpupool::cli
