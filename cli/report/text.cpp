// See render.h: what people read on a terminal.
#include <cstdio>

#include "cli/console.h"
#include "cli/report/render.h"
#include "cli/report/waste.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

constexpr std::size_t kMostWaste = 10;

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f%%", share * 100);
  return text;
}

std::string shown(std::string_view unit, std::uint64_t value) {
  if (unit == "bytes") return readable(value);
  if (unit == "ns") {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f ms", double(value) / 1e6);
    return text;
  }
  return std::to_string(value);
}

std::string row(std::string_view name, const std::string& value, std::string_view sentence) {
  return trimmed("  " + padded(name, 24) + padded(value, 12) + std::string{sentence}) + "\n";
}

// What did not happen needs no line, and what was not recorded one for all.
std::string pool_text(const PoolReport& pool) {
  std::string text =
      coloured(trimmed("device " + std::to_string(pool.device) + "  " + escaped(pool.card) + "  " + escaped(pool.uuid)),
               Colour::strong, Stream::out) +
      "\n";
#define GAUGE(name, unit, sentence)             \
  if (pool.knows(#name) && pool.name.peak != 0) \
    text += row(#name ".peak", shown(#unit, pool.name.peak), sentence ", at its peak");
#define COUNTER(name, unit, sentence) \
  if (pool.knows(#name) && pool.name != 0) text += row(#name, shown(#unit, pool.name), sentence);
#include "pool/stats.def"
#undef GAUGE
#undef COUNTER
  const auto share = [&](std::string_view name, double value, std::string_view sentence) {
    if (pool.knows(name)) text += row(name, percent(value), sentence);
  };
  share("waste", pool.waste, "needed memory that live blocks at their peak did not fill");
  share("internal_waste", pool.internal_waste, "bytes in blocks that nobody asked for");
  share("hit_rate", pool.hit_rate, "requests served by an existing hole");
  share("external_fragmentation", pool.external_fragmentation_peak,
        "holes' bytes outside the largest hole, at the peak");
  std::string missing;
  for (const std::string& name : pool.not_recorded) missing += (missing.empty() ? "" : ", ") + name;
  if (!missing.empty()) text += "  not recorded: " + missing + "\n";
  if (!pool.advice.empty()) text += "  next time: " + escaped(pool.advice, pool.advice.size()) + "\n";
  return text;
}

std::string cell(const Column& column, double value) {
  if (column.unit == "share") return percent(value);
  const auto whole = static_cast<std::uint64_t>(value);
  return column.unit == "bytes" ? readable(whole) : std::to_string(whole);
}

std::string waste_lines(const std::vector<RankRow>& rows, bool names_rank) {
  std::string text;
  const std::vector<WasteRow> all = top_waste(rows);
  for (std::size_t i = 0; i < all.size() && i < kMostWaste; ++i) {
    const WasteRow& one = all[i];
    text += "  waste: " + padded(readable(one.bytes), 12) + (names_rank ? padded(rank_of(*one.row), 8) : "") +
            std::string{waste_text(one.kind)} + (one.mend.empty() ? "" : "; to mend: " + one.mend) + "\n";
  }
  return text;
}

}  // namespace

std::string rank_of(const RankRow& row) {
  return (row.process->rank.empty() ? "-" : escaped(row.process->rank)) + "/" +
         std::to_string(row.pool ? row.pool->device : row.process->device);
}

std::string process_text(const ProcessReport& report) {
  std::string text;
  if (report.pid == 0) {  // a trace that does not say what it was recorded from
    text = coloured(escaped(report.executable, report.executable.size()), Colour::strong, Stream::out) + "  " +
           escaped(report.strategy) + "\n";
  } else {
    text = coloured("process " + std::to_string(report.pid), Colour::strong, Stream::out) + "  " +
           escaped(report.executable, report.executable.size()) + "  rank " + escaped(report.rank) + " on " +
           escaped(report.host) + "  " + escaped(report.strategy) + "  " +
           (report.ended == "killed" ? "last seen at " : "") + std::to_string(report.wall_ms) + " ms" +
           (report.ended == "killed" ? "  killed" : "") + "\n";
  }
  if (!report.note.empty()) text += "  " + report.note + "\n";
  text += row("coverage", percent(report.coverage), "share of bytes that were pooled");
  if (report.passed_live_peak != 0)
    text += row("passed_live.peak", readable(report.passed_live_peak), "what the driver served, at its peak");
  if (!report.advice.empty()) text += "  next time: " + escaped(report.advice, report.advice.size()) + "\n";
  for (const PoolReport& pool : report.pools) text += pool_text(pool);
  for (const PastReport& past : report.past) {
    text +=
        "  past the pool: " + escaped(past.api) + ", " + std::to_string(past.calls) + " calls, " + readable(past.bytes);
    text += past.refused ? ", " + std::to_string(past.refused) + " out of memory\n" : "\n";
  }
  return text + waste_lines(rank_rows({&report, 1}), false);
}

std::string ranks_text(const std::vector<RankRow>& rows) {
  constexpr std::size_t kWide = 16;
  constexpr std::size_t kName = 13;
  std::vector<std::pair<const Column*, Spread>> shown;  // what did not happen needs no column
  for (const Column& column : columns()) {
    const Spread spread = spread_of(rows, column);
    if (spread.worst != nullptr && spread.most != 0) shown.emplace_back(&column, spread);
  }
  const auto line = [&](std::string_view name, auto&& value) {
    std::string text = padded(name, kName);
    for (const auto& [column, spread] : shown) text += " " + padded(value(*column, spread), kWide);
    return trimmed(std::move(text)) + "\n";
  };
  std::string text =
      coloured(line("rank/device", [](const Column& column, const Spread&) { return std::string{column.name}; }),
               Colour::strong, Stream::out);
  for (const RankRow& one : rows) {
    text += line(rank_of(one), [&](const Column& column, const Spread&) {
      const std::optional<double> value = column.value(one);
      return value ? cell(column, *value) : std::string{"-"};
    });
  }
  text += line("worst", [](const Column& column, const Spread& spread) {
    return cell(column, spread.most) + " (" + rank_of(*spread.worst) + ")";
  });
  text += line("spread",
               [](const Column& column, const Spread& spread) { return cell(column, spread.most - spread.least); });
  for (const CardSum& sum : card_sums(rows)) {
    text += "card " + escaped(sum.uuid) + " on " + escaped(sum.host) + " (" + escaped(sum.card) +
            "): " + std::to_string(sum.processes) + " processes, reserved " + readable(sum.reserved_peak) + ", live " +
            readable(sum.live_peak) + " (sums of peaks)\n";
  }
  return text + waste_lines(rows, true);
}

}  // namespace gpupool::cli
