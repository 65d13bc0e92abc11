// `gpupool size`: how large the pool should be next time, by one counted run or by replaying traces.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/console.h"
#include "cli/launch.h"
#include "cli/replay/bisect.h"
#include "cli/replay/setup.h"
#include "cli/report/file.h"
#include "cli/trace/read.h"
#include "config/parse.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr Bytes kStep = 64_MiB;  // sizes for next time are multiples of it
constexpr Share kMargin{Share::kWhole / 10};
constexpr Bytes kHandles[] = {128_MiB, 64_MiB, 32_MiB, 16_MiB, 8_MiB, 4_MiB, 2_MiB};  // fastest first

// A share above 0, up to the whole; here 0% is one, too, and 2% is not the least.
Share share_of(std::string_view option, const std::string& text) {
  Share share;
  if (text == "0" || text == "0%") return share;
  const Fault fault = parse(text, share);
  if (fault != Fault::none)
    throw Problem(Exit::usage, std::string{option} + ": " + in_quotes(text) + " " + std::string{fault_text(fault)});
  return share;
}

Share margin_of(const Arguments& arguments) {
  return arguments.has("--margin") ? share_of("--margin", arguments.value("--margin")) : kMargin;
}

Bytes with_margin(Bytes need, Share margin) { return (need + margin.of(need) + kStep - 1) / kStep * kStep; }

struct Row {
  std::string who;
  Bytes need = 0;
  Json facts;
};

// One row for each pool or process, the advice, and what goes into --write.
Exit conclude(const Arguments& arguments, const std::vector<Row>& rows, Share margin, Bytes handle, Exit status) {
  const Bytes need = std::ranges::max_element(rows, {}, &Row::need)->need;
  const Bytes size = with_margin(need, margin);
  Json next{{"pool", {{"strategy", "best_fit"}, {"size", to_text(size)}}}};
  if (handle != 0) next["pool"]["handle"] = to_text(handle);
  if (arguments.has("--write")) write_new_file(arguments.value("--write"), next.dump(2) + "\n");
  if (arguments.has("--json")) {
    Json json{{"needed_bytes", need}, {"size_bytes", size}, {"configuration", next}, {"rows", Json::array()}};
    for (const Row& row : rows) {
      Json entry{{"name", row.who}, {"needed_bytes", row.need}};
      entry.update(row.facts);
      json["rows"].push_back(std::move(entry));
    }
    print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    return status;
  }
  std::string text;
  for (const Row& row : rows) text += padded(readable(row.need), 12) + escaped(row.who, row.who.size()) + "\n";
  text += "next time: pool.size=" + to_text(size) + (handle ? " pool.handle=" + to_text(handle) : "") +
          ", or as a file:\n" + next.dump(2) + "\n";
  print(text);
  return status;
}

// A recorded trace says whose it is; of other formats the file's name is all there is.
Row row_of(const Trace& trace, const Smallest& smallest) {
  Row row{trace.name, smallest.size, {{"peak_live_bytes", smallest.peak_live}, {"waste", smallest.waste()}}};
  if (trace.origin.pid == 0) return row;
  row.who += " (rank " + trace.origin.rank + ", device " + std::to_string(trace.origin.device) + ")";
  row.facts["rank"] = trace.origin.rank;
  row.facts["device"] = trace.origin.device;
  return row;
}

Exit by_traces(const Arguments& arguments) {
  const ReplaySetup setup = replay_setup("size", arguments);
  const ResolvedPool pool = resolve_for_replay(setup);
  std::vector<Trace> traces;
  for (const std::string& file : arguments.operands) {
    const std::size_t before = traces.size();
    for (Trace& trace : read_traces(file)) {  // of each device
      for (const std::string& line : trace.notes) note(line);
      if (trace.requests != 0) traces.push_back(std::move(trace));
    }
    if (traces.size() == before) throw Problem(Exit::input, escaped(file, file.size()) + ": holds no request");
  }
  const bool has_target = arguments.has("--target-waste");
  const double target =
      has_target
          ? double(share_of("--target-waste", arguments.value("--target-waste")).parts_per_billion) / Share::kWhole
          : 1.0;
  std::vector<Bytes> handles{pool.handle};
  if (has_target) handles.assign(std::begin(kHandles), std::end(kHandles));
  std::vector<Row> rows;
  double worst = 0;
  Bytes handle = 0;
  for (const Bytes tried : handles) {
    rows.clear();
    worst = 0;
    handle = tried;
    for (const Trace& trace : traces) {
      ResolvedPool with = pool;
      with.handle = tried;
      const Smallest smallest = smallest_pool(trace, with);
      worst = std::max(worst, smallest.waste());
      rows.push_back(row_of(trace, smallest));
    }
    if (worst <= target) break;
  }
  Exit status = Exit::ok;
  if (worst > target) {
    note("no pool.handle reaches the target; with the smallest one " +
         to_text(Share{static_cast<std::uint32_t>(worst * Share::kWhole)}) + " is wasted");
    status = Exit::warning;
  }
  return conclude(arguments, rows, arguments.has("--margin") ? margin_of(arguments) : Share{},
                  has_target ? handle : setup.options.handle.bytes, status);
}

/// A folder for the reports of one run, removed at the end.
class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "gpupool-size-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw Problem(Exit::output, pattern + ": " + error_text(errno));
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void add_rows(std::vector<Row>& rows, const ProcessReport& report) {
  const std::string who = report.executable + " (process " + std::to_string(report.pid);
  const Json facts{{"pid", report.pid}, {"rank", report.rank}, {"coverage", report.coverage}};
  for (const PoolReport& pool : report.pools) {
    rows.push_back({who + ", device " + std::to_string(pool.device) + ")", pool.needed.peak, facts});
    rows.back().facts["peak_live_bytes"] = pool.live.peak;
  }
  if (report.pools.empty() && report.passed_live_peak != 0) rows.push_back({who + ")", report.passed_live_peak, facts});
}

Exit by_running(const Arguments& arguments) {
  const Share margin = margin_of(arguments);
  Environment environment = own_environment();
  prepare(environment, "size", arguments);
  const Folder folder;
  set(environment, {"pool.strategy", arguments.has("--pooled") ? "auto_growth" : "passthrough"});
  set(environment, {"stats.path", (folder.path() / "%p.json").string()});
  set(environment, {"stats.summary", "off"});
  const int ended = run_and_wait(arguments.program, environment);
  std::vector<Row> rows;
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.path())) files.push_back(entry.path().string());
  std::ranges::sort(files);
  for (const std::string& file : files) add_rows(rows, read_report(file));
  if (ended != 0) note("the program ended with status " + std::to_string(ended));
  if (rows.empty())
    throw Problem(Exit::broken,
                  "no process of it used device memory through the preload; gpupool doctor -- PROGRAM may know why");
  return conclude(arguments, rows, margin, 0, ended == 0 ? Exit::ok : Exit::warning);
}

}  // namespace

Exit size_verb(const Arguments& arguments) {
  if (arguments.operands.empty() == arguments.program.empty()) {
    throw Problem(Exit::usage,
                  "traces or a program, and not both: gpupool size TRACE..., or gpupool size -- PROGRAM...");
  }
  // Before the work, which may take hours.
  if (const std::string file = arguments.value("--write"); !file.empty() && fs::exists(fs::symlink_status(file))) {
    throw Problem(Exit::output, escaped(file, file.size()) + ": exists already and is not overwritten");
  }
  return arguments.program.empty() ? by_traces(arguments) : by_running(arguments);
}

}  // namespace gpupool::cli
