// `gpupool report`: one process in full, or many ranks side by side; on the terminal, as JSON, or as a page.
#include <sys/stat.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "cli/console.h"
#include "cli/report/file.h"
#include "cli/report/from_trace.h"
#include "cli/report/leftover.h"
#include "cli/report/render.h"
#include "cli/trace/read.h"
#include "cli/trace/torch_snapshot.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

void add_traces(const std::string& file, std::vector<ProcessReport>& reports, std::vector<Timeline>& timelines) {
  for (const Trace& trace : read_traces(file)) {
    for (const std::string& line : trace.notes) note(line);
    if (trace.requests == 0) throw Problem(Exit::input, escaped(file, file.size()) + ": holds no request");
    TraceReport made = report_of(trace);
    reports.push_back(std::move(made.report));
    timelines.push_back(std::move(made.timeline));
  }
}

// A rank that is named twice, or through a link, counts once. What cannot be looked at is told where it is read.
std::vector<std::string> each_once(const std::vector<std::string>& files) {
  std::vector<std::string> once;
  std::set<std::pair<dev_t, ino_t>> seen;
  for (const std::string& file : files) {
    struct stat status {};
    if (stat(file.c_str(), &status) == 0 && !seen.emplace(status.st_dev, status.st_ino).second)
      note(escaped(file, file.size()) + " is given twice, and counts once");
    else
      once.push_back(file);
  }
  return once;
}

// A process that has written a report and a trace, or whose report was copied. It stays in all sums: which file is too
// many is not for us to say.
void tell_of_one_process(const std::vector<ProcessReport>& reports) {
  std::map<std::tuple<std::string, std::uint64_t, std::string>, std::vector<std::string>> of_process;
  for (const ProcessReport& one : reports) {
    if (one.pid == 0) continue;
    std::vector<std::string>& files = of_process[{one.host, one.pid, one.executable}];
    if (files.empty() || files.back() != one.file) files.push_back(one.file);  // a trace has a report for each device
  }
  for (const auto& [process, files] : of_process) {
    if (files.size() == 1) continue;
    std::string line = escaped(files[0], files[0].size()) + " and " + escaped(files[1], files[1].size());
    if (files.size() > 2) line += " (and " + std::to_string(files.size() - 2) + " more)";
    note(line + " are of one process, " + std::to_string(std::get<1>(process)) + " on " +
         escaped(std::get<0>(process)) + ", which sums count " + std::to_string(files.size()) + " times");
  }
}

}  // namespace

Exit report_verb(const Arguments& arguments) {
  for (const char* other : {"--html", "--json", "--leftover"}) arguments.allow_one_of({"--torch-snapshot", other});
  if (arguments.has("--torch-snapshot")) {
    if (arguments.operands.size() != 1) throw Problem(Exit::usage, "--torch-snapshot: takes one trace");
    write_new_file(arguments.value("--torch-snapshot"), torch_snapshot(read_traces(arguments.operands.front())));
    return Exit::ok;
  }
  if (arguments.operands.empty() && !arguments.has("--leftover")) throw Problem(Exit::usage, "FILE... is missing");
  if (arguments.has("--write") && !arguments.has("--leftover"))
    throw Problem(Exit::usage, "--write is for what --leftover finds");
  std::vector<ProcessReport> reports;
  std::vector<Timeline> timelines;
  for (const std::string& file : each_once(arguments.operands)) {
    const FileKind kind = kind_of(file);
    if (kind == FileKind::trace) {
      add_traces(file, reports, timelines);
      continue;
    }
    reports.push_back(kind == FileKind::page ? read_report_of_page(file) : read_report(file));
    timelines.push_back(timeline_of(reports.back()));
  }
  Leftovers leftovers;
  if (arguments.has("--leftover")) leftovers.find(reports);
  while (timelines.size() < reports.size()) timelines.push_back(timeline_of(reports[timelines.size()]));
  if (arguments.has("--write")) leftovers.write(arguments.value("--write"));
  tell_of_one_process(reports);
  if (reports.empty()) note("no process has left a page behind");
  if (reports.empty() && !arguments.has("--json")) return Exit::ok;
  if (arguments.has("--html")) {
    write_new_file(arguments.value("--html"), report_page(reports, timelines));
    if (!has_chart_library()) {
      note("the page has no curve: this gpupool was built without Dygraphs, the library that draws it");
    }
  }
  const std::vector<RankRow> rows = rank_rows(reports);
  if (arguments.has("--json")) {
    print(ranks_json(rows).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  } else if (!arguments.has("--html")) {
    print(reports.size() == 1 ? process_text(reports.front()) : ranks_text(rows));
  }
  leftovers.remove();
  return Exit::ok;
}

}  // namespace gpupool::cli
