// The smallest pool that serves a trace: replay with pool.size and pool.max at the same value, and bisection over that
// value. Best fit is not monotone: a pool may serve what one a handle larger does not, because blocks lie elsewhere. So
// the sizes below what bisection finds are tried as well, down to the live peak, or kMostBelow of them.
// A second run asks in a slightly other order than the recorded one, and holes then lie elsewhere: steady_pool() looks
// for a size that serves such orders, too.
#pragma once
#include <span>

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

/// Orders that a size has to serve beside the recorded one: kMostOrders, of long traces fewer, down to kFewestOrders,
/// so that a size costs about kEventsPlayed events.
inline constexpr std::uint64_t kMostOrders = 64;
inline constexpr std::uint64_t kFewestOrders = 16;
inline constexpr std::uint64_t kEventsPlayed = std::uint64_t{16} << 20;

/// Sizes that are a step apart; after as many again the step is twice as long, which bounds how many are tried.
inline constexpr unsigned kEqualSteps = 4;

/// The first size that serves each of the traces as recorded and in other orders, from `least` on and in multiples of
/// `step`; at most the card.
Bytes steady_pool(std::span<const Trace> traces, ResolvedPool pool, Bytes least, Bytes step);

}  // namespace gpupool::cli
