// One report of one process, as libgpupool_core.so writes it at the exit (stats.path), or its live page says: read,
// checked and typed. What a newer or older core does not say is 0 or empty; what has the wrong type is a Problem that
// names file and member.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpupool::cli {

struct GaugeReport {
  std::uint64_t current = 0;
  std::uint64_t peak = 0;
};

/// What all pools of the process held at a time, and what they had done by then. Times never go back.
struct CurveReport {
  std::uint64_t ms = 0;
  std::uint64_t reserved = 0;
  std::uint64_t live = 0;
  std::uint64_t growth_steps = 0;
  std::uint64_t migrations = 0;
  std::uint64_t fences = 0;
  std::uint64_t oom = 0;
};

/// Requests of at least this many bytes and less than twice as many.
struct SizeReport {
  std::uint64_t bytes = 0;
  std::uint64_t requests = 0;
};

struct PoolReport {
  std::uint64_t device = 0;
  std::string uuid;
  std::string card;
  std::uint64_t pre_reserved = 0;
  std::uint64_t limit = 0;
#define GAUGE(name, unit, sentence) GaugeReport name;
#define COUNTER(name, unit, sentence) std::uint64_t name = 0;
#include "pool/stats.def"
#undef GAUGE
#undef COUNTER
  double waste = 0;
  double internal_waste = 0;
  double hit_rate = 0;
  double external_fragmentation_peak = 0;
  std::uint64_t advice_size = 0;
  std::string advice;
  std::vector<SizeReport> sizes;
  /// Rows that the source does not tell, a trace for one: their values here mean nothing.
  std::vector<std::string> not_recorded;

  bool knows(std::string_view row) const;
};

/// A driver function whose calls went past the pools.
struct PastReport {
  std::string api;
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  std::uint64_t refused = 0;
};

struct ProcessReport {
  std::string file;
  std::string executable;
  std::uint64_t pid = 0;
  std::string host;
  std::string rank;
  std::string strategy;
  std::string ended;  // exit, killed or running; empty from an older core
  std::uint64_t wall_ms = 0;
  std::string note;          // where the numbers come from, if not from the process itself
  std::uint64_t device = 0;  // that a trace is of; a report names one for each pool
  std::uint64_t passed_live_peak = 0;
  std::uint64_t advice_size = 0;  // where there is no pool: of what the driver served
  std::string advice;
  double coverage = 0;
  std::vector<PoolReport> pools;
  std::vector<PastReport> past;
  std::vector<SizeReport> passed_sizes;  // of requests that the driver served; of a trace
  std::vector<CurveReport> curve;
};

/// What a file begins as.
enum class FileKind { report, page, trace };
FileKind kind_of(const std::string& path);

ProcessReport read_report(const std::string& path);
/// Of a live page, whether its process still runs or was killed.
ProcessReport read_report_of_page(const std::string& path);
/// The text of a report that is in memory already; `path` is what faults are told by.
ProcessReport parse_report(const std::string& path, std::string_view text);

}  // namespace gpupool::cli
