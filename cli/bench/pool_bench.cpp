#include "cli/bench/pool_bench.h"

#include <algorithm>
#include <random>
#include <vector>

#include "cli/bench/heap_count.h"
#include "pool/memory_backing.h"
#include "pool/memory_fence.h"
#include "pool/tape.h"

namespace gpupool::bench {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kSmallest = 512;
constexpr std::uint64_t kLargest = 100 * 1000;
constexpr unsigned kLongestWarmUp = 20;  // rounds of as many pairs as blocks
constexpr unsigned kQuietRounds = 3;     // without growth, of memory or tables, before anything is timed

struct Pair {
  std::uint32_t block;
  std::uint32_t bytes;
};

TapeOptions tape_options() {
  TapeOptions options;
  options.address_space = kMaxTapeBytes;
  options.growth_bytes = 64 * kMiB;
  return options;
}

class Load {
 public:
  explicit Load(const PoolRun& run)
      : random_(run.seed),
        backing_({.card_bytes = std::uint64_t{1} << 40}),
        fence_({.looks_until_done = 1}),
        tape_(tape_options(), backing_, fence_) {
    for (unsigned stream = 1; stream <= run.streams; ++stream)
      lines_.push_back(run.plain ? kContextLine : tape_.line_of(16 * stream, false));
    for (std::uint32_t i = 0; i < run.live; ++i) addresses_.push_back(tape_.allocate({size(), line_of(i)}).address);
    std::uint64_t held = 0;
    std::uint64_t allocated = 0;
    const auto grew = [&] { return held != tape_.stats().reserved.current() || allocated != heap_allocations(); };
    for (unsigned round = 0, quiet = 0; round < kLongestWarmUp && quiet < kQuietRounds; ++round) {
      held = tape_.stats().reserved.current();
      allocated = heap_allocations();
      for (std::uint32_t i = 0; i < std::max(run.live, run.pairs / 4); ++i) replace(pick());
      quiet = grew() ? 0 : quiet + 1;
    }
  }

  Pair pick() {
    return {static_cast<std::uint32_t>(random_() % addresses_.size()), static_cast<std::uint32_t>(size())};
  }

  void replace(Pair pair) {
    tape_.free(addresses_[pair.block], line_of(pair.block));
    addresses_[pair.block] = tape_.allocate({pair.bytes, line_of(pair.block)}).address;
  }

  // What the program itself does to know its addresses stays outside the measured time.
  [[gnu::noinline]] void measure(const std::vector<Pair>& pairs, std::vector<std::uint32_t>& times) {
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      std::uint64_t address = addresses_[pairs[i].block];
      const Line line = line_of(pairs[i].block);
      const std::uint64_t begin = ticks();
      tape_.free(address, line);
      address = tape_.allocate({pairs[i].bytes, line}).address;
      times[i] = static_cast<std::uint32_t>(ticks() - begin);
      addresses_[pairs[i].block] = address;
    }
  }

  const Tape& tape() const { return tape_; }

 private:
  Line line_of(std::uint32_t block) const { return lines_[block % lines_.size()]; }
  std::uint64_t size() { return kSmallest + random_() % (kLargest - kSmallest + 1); }

  std::mt19937_64 random_;
  MemoryBacking backing_;
  MemoryFence fence_;
  Tape tape_;
  std::vector<Line> lines_;  // each has its share of the blocks
  std::vector<std::uint64_t> addresses_;
};

}  // namespace

PoolResult run_pool(const PoolRun& run, const Clock& clock, void (*begin)(), void (*end)()) {
  const std::uint64_t resident = resident_bytes();
  Load load(run);
  const std::uint64_t filled = resident_bytes();
  const Stats& stats = load.tape().stats();
  std::vector<Pair> pairs(run.pairs);
  for (Pair& pair : pairs) pair = load.pick();
  std::vector<std::uint32_t> times(run.pairs);

  PoolResult result;
  result.live = run.live;
  if (filled > resident) result.host_bytes_per_block = static_cast<double>(filled - resident) / run.live;
  const std::uint64_t grown = stats.growth_steps.get();
  const std::uint64_t allocated = heap_allocations();
  if (begin != nullptr) begin();
  load.measure(pairs, times);
  if (end != nullptr) end();
  result.heap_allocations = heap_allocations() - allocated;
  result.growth_steps = stats.growth_steps.get() - grown;

  double sum = 0;
  for (std::uint32_t time : times) sum += time;
  std::sort(times.begin(), times.end());
  const auto ns = [&](double t) { return std::max(0.0, t * clock.ns_per_tick - clock.empty_ns); };
  result.mean_ns = ns(sum / run.pairs);
  result.p50_ns = ns(times[run.pairs / 2]);
  result.p99_ns = ns(times[static_cast<std::size_t>(run.pairs * 0.99)]);
  result.holes = stats.holes.current();
  result.reserved_to_live = static_cast<double>(stats.reserved.current()) / static_cast<double>(stats.live.current());
  if (const char* broken = load.tape().validate()) result.broken = broken;
  return result;
}

}  // namespace gpupool::bench
