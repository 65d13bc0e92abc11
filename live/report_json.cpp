// The report as one JSON object: {"gpupool_report": 1, "process": {...}, "pools": [...], "past_the_pool": [...],
// "curve_columns": [...], "curve": [...]}. A row is a member of its section under its own name; bytes, counts and
// nanoseconds are integers, shares are between 0 and 1.
#include <nlohmann/json.hpp>

#include "live/report.h"

namespace gpupool {
namespace {

using Json = nlohmann::ordered_json;

Json section_json(const ReportSection& section) {
  Json object = Json::object();
  for (const ReportRow& row : section.rows) {
    std::visit([&](const auto& value) { object[row.name] = value; }, row.value);
  }
  // [bytes from, requests] for each power of two that occurs.
  Json sizes = Json::array();
  for (std::size_t bucket = 0; bucket < section.size_counts.size(); ++bucket) {
    if (section.size_counts[bucket] != 0) sizes.push_back({std::uint64_t{1} << bucket, section.size_counts[bucket]});
  }
  if (!section.size_counts.empty()) object["sizes"] = std::move(sizes);
  return object;
}

}  // namespace

std::string report_json(const Report& report) {
  Json root;
  root["gpupool_report"] = Report::kSchemaVersion;
  root["process"] = Json::object();
  root["pools"] = Json::array();
  root["past_the_pool"] = Json::array();
  for (const ReportSection& section : report.sections) {
    if (section.list == "process")
      root["process"] = section_json(section);
    else
      root[section.list].push_back(section_json(section));
  }
  root["curve_columns"] = {"ms", "reserved", "live", "growth_steps", "migrations", "fences", "oom"};
  root["curve"] = Json::array();
  for (const CurvePoint& point : report.curve) {
    root["curve"].push_back(
        {point.ms, point.reserved, point.live, point.growth_steps, point.migrations, point.fences, point.oom});
  }
  return root.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace gpupool
