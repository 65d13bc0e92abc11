// See render.h: the page. Its data is one JSON object in which nothing can end the element that holds it; long lists of
// numbers are packed, so that a browser opens a million events without reading a million texts.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/manual.h"
#include "cli/report/page/assets.h"
#include "cli/report/render.h"
#include "cli/report/timeline.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string base64(const std::vector<std::uint32_t>& values) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve(values.size() * 6);
  std::uint32_t pending = 0;
  unsigned bits = 0;
  for (const std::uint32_t value : values) {
    for (unsigned byte = 0; byte < 4; ++byte) {
      pending = pending << 8 | (value >> (8 * byte) & 0xff);
      for (bits += 8; bits >= 6; bits -= 6) out += kDigits[pending >> (bits - 6) & 63];
    }
  }
  if (bits != 0) out += kDigits[pending << (6 - bits) & 63];
  while (out.size() % 4 != 0) out += '=';
  return out;
}

// 32-bit numbers and the power of two that they are multiplied with: sizes are multiples of 512, so they stay exact up
// to two TiB.
Json packed(const std::vector<std::uint64_t>& values) {
  std::uint64_t scale = 1;
  const std::uint64_t most = values.empty() ? 0 : *std::ranges::max_element(values);
  while (most / scale > UINT32_MAX) scale *= 2;
  std::vector<std::uint32_t> small;
  small.reserve(values.size());
  for (const std::uint64_t value : values) small.push_back(static_cast<std::uint32_t>(value / scale));
  return {{"scale", scale}, {"u32", base64(small)}};
}

std::string_view name_of(TimelineMarkKind kind) {
  switch (kind) {
    case TimelineMarkKind::growth_steps:
      return "growth_steps";
    case TimelineMarkKind::migrations:
      return "migrations";
    case TimelineMarkKind::fences:
      return "fences";
    case TimelineMarkKind::oom:
      return "oom";
  }
  return "";
}

Json blocks_json(const std::vector<BlockSpan>& blocks) {
  Json json;
  const auto column = [&](const char* name, std::uint64_t BlockSpan::*value) {
    std::vector<std::uint64_t> values;
    values.reserve(blocks.size());
    for (const BlockSpan& block : blocks) values.push_back(block.*value);
    json[name] = packed(values);
  };
  column("begin", &BlockSpan::begin);
  column("end", &BlockSpan::end);
  column("address", &BlockSpan::address);
  column("bytes", &BlockSpan::bytes);
  return json;
}

Json timeline_json(const Timeline& timeline) {
  Json json{{"points", timeline.time.size()},
            {"unit", timeline.unit == TimeUnit::microseconds ? "us" : "events"},
            {"limit", timeline.limit},
            {"time", packed(timeline.time)},
            {"reserved", packed(timeline.reserved)},
            {"live", packed(timeline.live)},
            {"marks", Json::array()},
            {"note", timeline.note}};
  for (const TimelineMark& mark : timeline.marks) json["marks"].push_back({mark.time, name_of(mark.kind), mark.count});
  if (!timeline.blocks.empty()) json["blocks"] = blocks_json(timeline.blocks);
  return json;
}

Json sizes_json(const ProcessReport& report) {
  std::map<std::uint64_t, std::uint64_t> sums;
  for (const PoolReport& pool : report.pools)
    for (const SizeReport& size : pool.sizes) sums[size.bytes] += size.requests;
  for (const SizeReport& size : report.passed_sizes) sums[size.bytes] += size.requests;
  Json json = Json::array();
  for (const auto& [bytes, requests] : sums) json.push_back({bytes, requests});
  return json;
}

std::string process_name(const ProcessReport& report) {
  if (report.pid == 0) return report.executable;  // a trace that does not say what it was recorded from
  return "rank " + report.rank + " on " + report.host + ": process " + std::to_string(report.pid) + ", " +
         report.executable;
}

Json process_json(const ProcessReport& report, const Timeline& timeline) {
  Json json{{"name", process_name(report)},
            {"sizes", sizes_json(report)},
            {"past", Json::array()},
            {"timeline", timeline_json(timeline)}};
  for (const PastReport& past : report.past)
    json["past"].push_back({{"api", past.api}, {"calls", past.calls}, {"bytes", past.bytes}});
  return json;
}

Json statistics_json() {
  Json json = Json::array();
  const auto add = [&](std::string name, std::string_view unit, std::string_view sentence) {
    json.push_back({{"name", std::move(name)}, {"unit", unit}, {"sentence", sentence}});
  };
#define GAUGE(name, unit, sentence) add(#name ".peak", #unit, sentence ", at its peak");
#define COUNTER(name, unit, sentence) add(#name, #unit, sentence);
#include "pool/stats.def"
#undef GAUGE
#undef COUNTER
  add("waste", "share", "needed memory that live blocks at their peak did not fill");
  add("internal_waste", "share", "bytes in blocks that nobody asked for");
  add("hit_rate", "share", "requests served by an existing hole");
  add("external_fragmentation.peak", "share", "holes' bytes outside the largest hole, at the peak");
  add("coverage", "share", "bytes asked for that were pooled");
  return json;
}

Json page_data(const std::vector<ProcessReport>& reports, const std::vector<Timeline>& timelines) {
  const std::vector<RankRow> rows = rank_rows(reports);
  Json json = ranks_json(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    json["pools"][i]["index"] = i;
    json["pools"][i]["process"] = rows[i].process - reports.data();
    json["pools"][i]["name"] = rank_of(rows[i]);
    for (const Column& column : columns()) {
      if (const std::optional<double> value = column.value(rows[i]))
        json["pools"][i][std::string{column.name}] = *value;
    }
  }
  json["columns"] = Json::array();
  for (const Column& column : columns()) {
    json["columns"].push_back({{"name", column.name}, {"unit", column.unit}});
    const Spread spread = spread_of(rows, column);
    if (spread.worst) json["summary"][std::string{column.name}]["worst"] = spread.worst - rows.data();
  }
  json["statistics"] = statistics_json();
  json["processes"] = Json::array();
  for (std::size_t i = 0; i < reports.size(); ++i) json["processes"].push_back(process_json(reports[i], timelines[i]));
  json["title"] =
      reports.size() == 1 ? "strategy " + reports.front().strategy : std::to_string(reports.size()) + " processes";
  return json;
}

// Within a script element only "<" can begin its end.
std::string harmless(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 64);
  for (const char c : text) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

}  // namespace

bool has_chart_library() { return !assets::library.empty(); }

std::string report_page(const std::vector<ProcessReport>& reports, const std::vector<Timeline>& timelines) {
  const std::string data = harmless(page_data(reports, timelines).dump(-1, ' ', false, Json::error_handler_t::replace));
  std::string page;
  std::string_view rest = assets::page;
  const auto until = [&](std::string_view mark) {
    const std::size_t at = rest.find(mark);
    page += rest.substr(0, at);
    rest.remove_prefix(at + mark.size());
  };
  until("{{style}}");
  page.append(assets::library_style).append(assets::style);
  until("{{version}}");
  page += version();
  until("{{data}}");
  page += data;
  until("{{library}}");
  page += assets::library;
  until("{{script}}");
  page += assets::script;
  return page.append(rest);
}

}  // namespace gpupool::cli
