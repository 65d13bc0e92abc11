// The table that people see at the end of a process.
#include "live/report.h"

#include <cstdio>

#include "config/text.h"

namespace gpupool {
namespace {

std::string shown(const ReportRow& row) {
  char number[32];
  switch (row.unit) {
    case ReportUnit::kBytes:
      return readable(std::get<std::uint64_t>(row.value));
    case ReportUnit::kCount:
      return std::to_string(std::get<std::uint64_t>(row.value));
    case ReportUnit::kNanoseconds:
      std::snprintf(number, sizeof number, "%.1f ms", double(std::get<std::uint64_t>(row.value)) / 1e6);
      return number;
    case ReportUnit::kShare:
      std::snprintf(number, sizeof number, "%.1f %%", std::get<double>(row.value) * 100);
      return number;
    case ReportUnit::kText:
      return std::get<std::string>(row.value);
  }
  return "";
}

// What did not happen needs no line.
bool is_zero(const ReportRow& row) {
  const auto* number = std::get_if<std::uint64_t>(&row.value);
  return number && *number == 0;
}

std::uint64_t number_of(const ReportSection& section, std::string_view name) {
  for (const ReportRow& row : section.rows) {
    if (row.name == name) return std::get<std::uint64_t>(row.value);
  }
  return 0;
}

// An API past the pools fits on one line.
std::string past_line(const ReportSection& section) {
  std::string line = "gpupool:   past the pool: " + section.title + ", " + std::to_string(number_of(section, "calls")) +
                     " calls, " + readable(number_of(section, "bytes"));
  if (const std::uint64_t refused = number_of(section, "refused"))
    line += ", " + std::to_string(refused) + " out of memory";
  if (const std::uint64_t rescued = number_of(section, "rescued"))
    line += ", " + std::to_string(rescued) + " after the pool made room";
  return line + "\n";
}

}  // namespace

std::string report_text(const Report& report) {
  std::string text;
  for (const ReportSection& section : report.sections) {
    if (section.list == "past_the_pool") {
      text += past_line(section);
      continue;
    }
    text += "gpupool: " + section.title + "\n";
    for (const ReportRow& row : section.rows) {
      if (row.audience != Audience::kEveryone || is_zero(row)) continue;
      char name[48];
      std::snprintf(name, sizeof name, "gpupool:   %-28s ", row.name.c_str());
      text += name + shown(row) + "\n";
    }
  }
  return text;
}

}  // namespace gpupool
