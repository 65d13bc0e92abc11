// The exit report: what was asked of device memory and how well it was used. One emitter (collect) makes sections of
// rows from a live page; the table on stderr and the JSON file are two renderings of them. Runs at the end of a process
// for its own page, and in the command for the page that a killed process has left. Reads memory and writes files only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "live/page.h"

namespace gpupool {

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

/// What became of the process that the page is of.
enum class Ending : std::uint8_t { kExit, kKilled, kRunning };

/// `pools` are the page's, or lie elsewhere where the page had no room for them.
Report collect(const Page& page, const std::vector<const PoolSlot*>& pools, Ending ending);

/// Whether any device memory was asked for.
bool used_device_memory(const Page& page, const std::vector<const PoolSlot*>& pools);

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
/// suffix where the name is taken. A device takes it as it is. Returns the name; empty: errno says why.
std::string write_report(const std::string& path, std::string_view text);

}  // namespace gpupool
