// The exit report: what was asked of device memory and how well it was used. One emitter (collect) makes sections of
// rows; the table on stderr and the JSON file are two renderings of them. Runs at the end of the process, or for tests
// on made-up values; makes no CUDA call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "preload/curve.h"

namespace gpupool {

struct Process;

enum class ReportUnit : std::uint8_t { kBytes, kCount, kNanoseconds, kShare, kText };

/// Which rows people see; the file has all.
enum class Audience : std::uint8_t { kEveryone, kFile };

struct ReportRow {
  std::string name;  // as in stats.def, with .peak for the peak of a gauge
  ReportUnit unit;
  std::variant<std::uint64_t, double, std::string> value;
  std::string sentence;
  Audience audience = Audience::kFile;
};

/// One object of a list: a pool, or an API whose calls went past the pools.
struct ReportSection {
  std::string list;   // "process", "pools", "past_the_pool"
  std::string title;  // for people
  std::vector<ReportRow> rows = {};
  std::vector<std::uint64_t> size_counts = {};  // requests by power of two; pools only
};

struct Report {
  static constexpr int kSchemaVersion = 1;
  std::vector<ReportSection> sections;
  std::vector<CurvePoint> curve;
};

/// Whether the state of the tapes may be looked at under their locks. Not when the process ends inside one of our own
/// calls.
enum class Depth : std::uint8_t { kFull, kCountersOnly };

Report collect(Process& process, Depth depth);

/// The part of `whole` that is not `kept`, 0 to 1.
constexpr double share_lost(std::uint64_t kept, std::uint64_t whole) {
  return whole == 0 || kept >= whole ? 0.0 : 1.0 - double(kept) / double(whole);
}

/// pool.size for the next run of this program: the need times 1.1 to 1.3, by how much of it was lost to fragmentation,
/// rounded up.
struct Advice {
  std::uint64_t size = 0;
  std::string reason;
};
Advice advise(std::uint64_t needed_peak, std::uint64_t live_peak, std::uint64_t most);

/// A hint where cudaFree did not wait and the program has host memory that the card can write; "" where there is none.
std::string hint_at_sync(std::uint64_t plain_frees, std::uint64_t pinned_bytes);

std::string report_text(const Report& report);
std::string report_json(const Report& report);

/// Writes a new file beside `path` and gives it the name when it is complete: mode 0600, no link followed, and with a
/// suffix where the name is taken. Returns the name, empty when the file could not be written.
std::string write_report(const std::string& path, std::string_view text);

/// At the end of the process: says and writes what was asked for, if this process used device memory at all.
void finish_process();

}  // namespace gpupool
