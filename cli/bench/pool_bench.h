// One run of the pool benchmark: a tape over books instead of memory, `live` blocks of 0.5 to 100 kB, and pairs of one
// free and one allocation in random order. The pool is warmed up until it has stopped growing; then every pair is timed
// by itself. Single-threaded: no lock is contended. Deterministic for a seed, but for the times.
#pragma once

#include <cstdint>
#include <string>

#include "cli/bench/ticks.h"

namespace gpupool::bench {

struct PoolRun {
  std::uint32_t live = 1000;
  std::uint32_t pairs = 200000;
  std::uint64_t seed = 1;
  bool plain = false;    // cuMemAlloc's path: every free makes a record, every reuse may wait for one
  unsigned streams = 1;  // that have a share of the blocks each; their work is done once it is asked for
};

struct PoolResult {
  std::uint32_t live = 0;
  double p50_ns = 0;
  double p99_ns = 0;
  double mean_ns = 0;
  std::uint64_t heap_allocations = 0;  // within the measured pairs
  std::uint64_t growth_steps = 0;      // the same
  std::uint64_t holes = 0;
  double reserved_to_live = 0;
  double host_bytes_per_block = 0;  // resident, the simulated card's books and the program's own addresses included
  std::string broken;               // the first invariant that is broken afterwards; empty: none
};

/// `begin` and `end` are called right before and after the measured pairs; either may be null.
PoolResult run_pool(const PoolRun& run, const Clock& clock, void (*begin)() = nullptr, void (*end)() = nullptr);

}  // namespace gpupool::bench
