// See file.h.
#include "cli/report/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/console.h"
#include "cli/input.h"
#include "config/text.h"
#include "live/reader.h"

namespace gpupool::cli {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLargest = std::size_t{256} << 20;  // far more than a report with a curve of a month
constexpr std::uint64_t kVersion = 1;

[[noreturn]] void refuse(const std::string& path, const std::string& problem) {
  throw Problem(Exit::input, escaped(path, path.size()) + ": " + problem);
}

// Where the text stops to be JSON, without the parser's words.
std::string json_fault(std::string_view text, const Json::exception& error) {
  const auto* const syntax = dynamic_cast<const Json::parse_error*>(&error);
  if (syntax == nullptr) return "holds a number that is too large";  // for any double
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return "holds nothing but blanks";
  const std::string_view before = text.substr(0, syntax->byte == 0 ? 0 : syntax->byte - 1);
  const std::size_t line_start = before.rfind('\n') + 1;  // 0 on the first line
  return "line " + std::to_string(std::ranges::count(before, '\n') + 1) + ", column " +
         std::to_string(before.size() - line_start + 1) + ": " +
         (before.size() == text.size() ? "the file ends too early" : "is no JSON");
}

// The members of one object, each by its name and type.
class Members {
 public:
  Members(const std::string& path, std::string place, const Json& object)
      : path_(path), place_(std::move(place)), object_(object) {
    if (!object_.is_object()) refuse(path_, place_ + " is no object");
  }

  void take(const char* name, std::uint64_t& value) const {
    if (const Json* member = find(name)) {
      if (!member->is_number_unsigned()) wrong(name, "a count");
      value = member->get<std::uint64_t>();
    }
  }
  void take(const char* name, double& value) const {
    if (const Json* member = find(name)) {
      if (!member->is_number()) wrong(name, "a number");
      value = member->get<double>();
    }
  }
  void take(const char* name, std::string& value) const {
    if (const Json* member = find(name)) {
      if (!member->is_string()) wrong(name, "a text");
      value = member->get<std::string>();
    }
  }
  /// The members of each object in a list.
  template <class Visit>
  void each(const char* name, Visit&& visit) const {
    const Json* list = find(name);
    if (list == nullptr) return;
    if (!list->is_array()) wrong(name, "a list");
    for (std::size_t i = 0; i < list->size(); ++i)
      visit(Members(path_, std::string{name} + "[" + std::to_string(i) + "]", (*list)[i]));
  }
  /// The rows of a list of equally long rows of counts.
  template <class Visit>
  void each_row(const char* name, std::size_t columns, Visit&& visit) const {
    const Json* list = find(name);
    if (list == nullptr) return;
    if (!list->is_array()) wrong(name, "a list");
    std::vector<std::uint64_t> row;
    for (const Json& entry : *list) {
      row.clear();
      for (const Json& value : entry) {
        if (!value.is_number_unsigned()) wrong(name, "a list of rows of counts");
        row.push_back(value.get<std::uint64_t>());
      }
      if (!entry.is_array() || row.size() != columns)
        wrong(name, ("a list of rows of " + std::to_string(columns) + " counts").c_str());
      visit(row);
    }
  }
  std::vector<std::string> texts(const char* name) const {
    const Json* list = find(name);
    std::vector<std::string> out;
    if (list == nullptr) return out;
    if (!list->is_array()) wrong(name, "a list");
    for (const Json& entry : *list) {
      if (!entry.is_string()) wrong(name, "a list of texts");
      out.push_back(entry.get<std::string>());
    }
    return out;
  }
  Members object(const char* name) const {
    const Json* member = find(name);
    if (member == nullptr) refuse(path_, std::string{name} + " is missing");
    return {path_, name, *member};
  }

 private:
  const Json* find(const char* name) const {
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }
  [[noreturn]] void wrong(const char* name, const char* type) const {
    refuse(path_, (place_.empty() ? "" : place_ + ".") + name + " is not " + type);
  }

  const std::string& path_;
  std::string place_;
  const Json& object_;
};

struct CurveColumn {
  std::string_view name;
  std::uint64_t CurveReport::*value;
};
constexpr CurveColumn kCurveColumns[] = {
    {"ms", &CurveReport::ms},
    {"reserved", &CurveReport::reserved},
    {"live", &CurveReport::live},
    {"growth_steps", &CurveReport::growth_steps},
    {"migrations", &CurveReport::migrations},
    {"fences", &CurveReport::fences},
    {"oom", &CurveReport::oom},
};

std::vector<CurveReport> curve_of(const Members& members) {
  std::vector<std::string> names = members.texts("curve_columns");
  if (names.empty()) names = {"ms", "reserved", "live"};  // the first reports did not say
  std::vector<CurveReport> curve;
  members.each_row("curve", names.size(), [&](const std::vector<std::uint64_t>& row) {
    CurveReport& point = curve.emplace_back();
    for (const CurveColumn& column : kCurveColumns) {
      const auto found = std::ranges::find(names, column.name);
      if (found != names.end()) point.*column.value = row[static_cast<std::size_t>(found - names.begin())];
    }
  });
  std::ranges::stable_sort(curve, {}, &CurveReport::ms);
  return curve;
}

PoolReport pool_of(const Members& members) {
  PoolReport pool;
  members.take("device", pool.device);
  members.take("uuid", pool.uuid);
  members.take("card", pool.card);
  members.take("pre_reserved", pool.pre_reserved);
  members.take("limit", pool.limit);
#define GAUGE(name, unit, sentence) members.take(#name, pool.name.current), members.take(#name ".peak", pool.name.peak);
#define COUNTER(name, unit, sentence) members.take(#name, pool.name);
#include "pool/stats.def"
#undef GAUGE
#undef COUNTER
  members.take("waste", pool.waste);
  members.take("internal_waste", pool.internal_waste);
  members.take("hit_rate", pool.hit_rate);
  members.take("external_fragmentation.peak", pool.external_fragmentation_peak);
  members.take("advice_size", pool.advice_size);
  members.take("advice", pool.advice);
  members.each_row("sizes", 2, [&](const std::vector<std::uint64_t>& row) { pool.sizes.push_back({row[0], row[1]}); });
  return pool;
}

}  // namespace

bool PoolReport::knows(std::string_view row) const {
  return std::ranges::find(not_recorded, row) == not_recorded.end();
}

FileKind kind_of(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe without a writer is empty
  if (file < 0) refuse(path, error_text(errno));
  struct stat status {};
  char start[256];
  const ssize_t got = fstat(file, &status) == 0 && S_ISREG(status.st_mode) ? read(file, start, sizeof start) : 0;
  const int error = errno;
  close(file);
  if (got < 0) refuse(path, error_text(error));
  if (S_ISDIR(status.st_mode)) refuse(path, "is a folder");
  if (!S_ISREG(status.st_mode)) refuse(path, "is no regular file");
  if (got == 0) refuse(path, "is empty");
  const std::string_view text{start, static_cast<std::size_t>(got)};
  if (text.size() >= sizeof kPageMagic && std::memcmp(text.data(), &kPageMagic, sizeof kPageMagic) == 0)
    return FileKind::page;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first == std::string_view::npos || text[first] == '{' || text[first] == '[';
  return is_json ? FileKind::report : FileKind::trace;
}

ProcessReport read_report_of_page(const std::string& path) {
  std::string problem = "is gone";
  const std::optional<PageCopy> copy = read_page(path, problem);
  if (!copy) refuse(path, problem);
  if (!copy->flaw.empty()) note(escaped(path, path.size()) + ": " + copy->flaw);
  return parse_report(path, report_json(copy->report()));
}

ProcessReport read_report(const std::string& path) { return parse_report(path, read_input(path, kLargest)); }

ProcessReport parse_report(const std::string& path, std::string_view text) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::exception& error) {  // a number that no double holds is another kind
    refuse(path, json_fault(text, error));
  }
  if (!json.is_object() || !json.contains("gpupool_report")) refuse(path, "is no report of gpupool");
  const Members root(path, "", json);
  std::uint64_t version = 0;
  root.take("gpupool_report", version);
  if (version != kVersion)
    refuse(path, "is a report of version " + std::to_string(version) + "; this command reads version " +
                     std::to_string(kVersion));

  ProcessReport report;
  report.file = path;
  const Members process = root.object("process");
  process.take("executable", report.executable);
  process.take("pid", report.pid);
  process.take("host", report.host);
  process.take("rank", report.rank);
  process.take("strategy", report.strategy);
  process.take("ended", report.ended);
  process.take("wall_ms", report.wall_ms);
  process.take("passed_live.peak", report.passed_live_peak);
  process.take("advice_size", report.advice_size);
  process.take("advice", report.advice);
  process.take("coverage", report.coverage);
  root.each("pools", [&](const Members& members) { report.pools.push_back(pool_of(members)); });
  root.each("past_the_pool", [&](const Members& members) {
    PastReport& past = report.past.emplace_back();
    members.take("api", past.api);
    members.take("calls", past.calls);
    members.take("bytes", past.bytes);
    members.take("refused", past.refused);
  });
  report.curve = curve_of(root);
  return report;
}

}  // namespace gpupool::cli
