// The live page: what a process shows of itself while it runs, in one file of shared memory that outlives it when it is
// killed. A fixed layout of plain 64-bit words and texts: first one Page, then a PoolSlot for each pool there has been.
// The core writes it, without locks and without system calls: what it counts, it counts here. Readers copy the file and
// trust nothing in it (reader.h). The statistics of a pool are found by the names in stat_names, so that rows can be
// added to stats.def without a new version; whatever else changes the layout raises kPageVersion.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "pool/size_histogram.h"
#include "pool/stats.h"

namespace gpupool {

inline constexpr std::uint64_t kPageMagic = 0x0a6c6f6f70757067;  // "gpupool\n" in memory
inline constexpr std::uint64_t kPageVersion = 1;

/// A text of bounded length: a reader stops at its end, with or without a terminating zero.
template <std::size_t kBytes>
struct PageText {
  char bytes[kBytes] = {};

  void set(std::string_view text) {
    const std::size_t length = std::min(text.size(), kBytes - 1);
    std::copy_n(text.data(), length, bytes);
    std::fill(bytes + length, bytes + kBytes, '\0');
  }
  std::string get() const { return {bytes, std::find(bytes, bytes + kBytes, '\0')}; }
};

/// Which process it is. The pid is that of its own namespace, whose inode tells equal pids of containers apart.
struct PageIdentity {
  std::uint64_t pid = 0;
  std::uint64_t start_ticks = 0;  // field 22 of /proc/PID/stat
  std::uint64_t pid_namespace = 0;
  std::uint64_t started_ns = 0;  // CLOCK_MONOTONIC of the first CUDA call
  PageText<40> boot;
  PageText<64> host;
  PageText<32> rank;
  PageText<16> strategy;
  PageText<16> version;
  PageText<256> executable;
};

/// Calls of one driver function that went past the pools.
struct CallCount {
  PageText<48> name;
  std::uint64_t device_memory = 0;        // 1: its bytes are the card's
  std::atomic<std::uint64_t> calls{0};    // that the driver served
  std::atomic<std::uint64_t> bytes{0};    // asked for by them, where the call says how many
  std::atomic<std::uint64_t> refused{0};  // out of memory, after whatever the pool gave back
  std::atomic<std::uint64_t> rescued{0};  // served on the second try, after memory had been given back
};

/// Device memory that the driver serves.
struct PassedBytes {
  std::atomic<std::uint64_t> live{0};
  std::atomic<std::uint64_t> peak{0};
};

struct CurvePoint {
  std::uint64_t ms = 0;  // since the process's first CUDA call
  std::uint64_t reserved = 0;
  std::uint64_t live = 0;  // the driver's share included
  std::uint64_t growth_steps = 0;
  std::uint64_t migrations = 0;
  std::uint64_t fences = 0;
  std::uint64_t oom = 0;
};

/// See preload/curve.h. Oldest first; while the writer thins it out, points may be seen twice.
struct PageCurve {
  static constexpr unsigned kMostPoints = 2048;
  std::atomic<std::uint64_t> count{0};
  CurvePoint points[kMostPoints];
};

/// A request of another process of this user: give memory back. See mailbox.h for who changes what when.
struct Letter {
  std::atomic<std::uint32_t> state{0};
  std::uint32_t from = 0;        // process id, for the log
  std::uint64_t written_ns = 0;  // CLOCK_MONOTONIC
  std::uint64_t want = 0;        // bytes; all ones for as much as there is
  std::uint64_t keep = 0;        // bytes that each pool may keep in any case
  std::uint64_t given = 0;       // the answer
  PageText<48> uuid;             // of the card; empty for all
};

struct Mailbox {
  static constexpr unsigned kLetters = 8;
  std::atomic<std::uint32_t> bell{0};  // a futex: raised for each letter
  std::atomic<std::uint32_t> open{0};  // 1: a thread reads the letters
  Letter letters[kLetters];
};

inline constexpr unsigned kMostStats = 128;

/// One pool: a context's memory on one card.
struct PoolSlot {
  enum State : std::uint64_t { kUnused, kServing, kRetired };
  Counter state;
  std::uint64_t device = 0;   // CUDA ordinal in its process
  std::uint64_t created = 0;  // 1: of a context that the program created, 0: of the primary one
  std::uint64_t pre_reserved = 0;
  std::uint64_t limit = 0;
  PageText<48> uuid;
  PageText<96> card;
  Counter largest_hole;                          // when last looked at
  Counter hole_bytes;                            // the same
  Counter fragmentation_at_peak_millionths;      // holes' bytes outside the largest hole, when most was live
  std::atomic<std::uint64_t> unwaited_frees{0};  // plain frees that did not wait for the card
  SizeHistogram sizes;
  Stats stats;
  std::uint64_t further_stats[kMostStats - sizeof(Stats) / sizeof(std::uint64_t)] = {};
};

struct Page {
  static constexpr unsigned kMostPools = 256;
  static constexpr unsigned kMostCalls = 256;

  std::atomic<std::uint64_t> magic{0};  // set when the page is complete
  std::uint64_t version = kPageVersion;
  std::uint64_t page_bytes = 0;
  std::uint64_t pool_bytes = 0;
  PageIdentity identity;
  std::uint64_t stat_count = 0;
  PageText<32> stat_names[kMostStats];  // "live", "live.peak", "requests": word i of PoolSlot::stats
  Counter seen_ms;                      // the page's clock: time since the first CUDA call, as of the last look
  std::atomic<std::uint64_t> pool_count{0};
  PassedBytes passed;
  Mailbox mailbox;
  std::uint64_t call_count = 0;
  CallCount calls[kMostCalls];
  PageCurve curve;
};

constexpr std::uint64_t page_file_bytes(std::uint64_t pools) { return sizeof(Page) + pools * sizeof(PoolSlot); }

/// Fills in what says how to read the rest.
inline void describe_layout(Page& page) {
  page.page_bytes = sizeof(Page);
  page.pool_bytes = sizeof(PoolSlot);
  page.stat_count = 0;
#define GAUGE(name, unit, sentence)              \
  page.stat_names[page.stat_count++].set(#name); \
  page.stat_names[page.stat_count++].set(#name ".peak");
#define COUNTER(name, unit, sentence) page.stat_names[page.stat_count++].set(#name);
#include "pool/stats.def"
#undef GAUGE
#undef COUNTER
}

}  // namespace gpupool
