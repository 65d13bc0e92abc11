// `gpupool size -- PROGRAM`: the need of every process of one run, and what was used beside the pool.
#include <algorithm>
#include <charconv>
#include <filesystem>

#include "cli/console.h"
#include "cli/folder.h"
#include "cli/launch.h"
#include "cli/replay/setup.h"
#include "cli/report/file.h"
#include "cli/size/caches.h"
#include "cli/size/plan.h"
#include "cli/size/watch.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

namespace fs = std::filesystem;

// A tenth, and as much more as holes took: whoever lost memory to them once may lose more to them next time.
constexpr double kLeastMargin = 0.1;
constexpr double kMostMargin = 0.3;

std::optional<double> seconds_of(const Arguments& arguments) {
  if (!arguments.has("--seconds")) return std::nullopt;
  const std::string text = arguments.value("--seconds");
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size() || !(seconds > 0))
    throw Problem(Exit::usage, "--seconds: " + in_quotes(text) + " is no number of seconds");
  return seconds;
}

struct Found {
  SizePlan plan;
  double lost = 0;      // the greatest share of a need that holes took
  Bytes on_cards = 0;   // what the processes had of them by our count, at their peaks
  Bytes processes = 0;  // that used device memory
};

void add_rows(Found& found, const ProcessReport& report) {
  const std::string who = "rank " + report.rank + ": " + report.executable + " (process " + std::to_string(report.pid);
  const nlohmann::ordered_json facts{{"pid", report.pid}, {"rank", report.rank}, {"coverage", report.coverage}};
  const std::size_t before = found.plan.rows.size();
  for (const PoolReport& pool : report.pools) {
    found.plan.rows.push_back({who + ", device " + std::to_string(pool.device) + ")", pool.needed.peak, facts});
    found.plan.rows.back().facts["peak_live_bytes"] = pool.live.peak;
    found.on_cards += pool.reserved.peak;
    found.lost = std::max(found.lost, pool.waste);
  }
  if (report.pools.empty() && report.passed_live_peak != 0)
    found.plan.rows.push_back({who + ")", report.passed_live_peak, facts});
  if (found.plan.rows.size() == before) return;
  found.on_cards += report.passed_live_peak;
  ++found.processes;
}

}  // namespace

Exit size_by_running(const Arguments& arguments) {
  Found found;
  const std::optional<double> most_seconds = seconds_of(arguments);
  if (arguments.has("--margin")) found.plan.margin = share_of("--margin", arguments.value("--margin"));
  if (arguments.has("--card")) found.plan.card = bytes_of_text("--card", arguments.value("--card"));
  Environment environment = own_environment();
  prepare(environment, "size", arguments);
  const Folder folder;
  set(environment, {"pool.strategy", arguments.has("--pooled") ? "auto_growth" : "passthrough"});
  set(environment, {"stats.path", (folder.path() / "%p.json").string()});
  if (arguments.has("--unify")) {
    for (const std::string& line : unify(environment)) note(line);
    found.plan.advice.push_back(
        "measured with --unify: the next run needs it, too: gpupool run --unify --config FILE -- PROGRAM");
  }
  set(environment, {"stats.summary", "off"});
  RunWatch watch(most_seconds);
  CacheWatch caches(environment, folder.path().string());
  const int ended = run_and_wait(arguments.program, environment, [&](double seconds) {
    caches.look(seconds);
    return watch.look(seconds);
  });
  watch.finish();
  for (const std::string& framework : caches.frameworks())
    found.plan.advice.push_back(
        framework +
        " has a cache of its own, which was counted as needed; size --unify and then run --unify do without it");
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.path())) files.push_back(entry.path().string());
  std::ranges::sort(files);
  for (const std::string& file : files) add_rows(found, read_report(file));
  if (watch.stopped()) {
    note("the program was stopped after --seconds; what it would have needed later is not known");
  } else if (ended != 0) {
    note("the program ended with status " + std::to_string(ended));
  }
  if (found.plan.rows.empty())
    throw Problem(Exit::broken,
                  "no process of it used device memory through the preload; gpupool doctor -- PROGRAM may know why");
  if (!arguments.has("--margin"))
    found.plan.margin.parts_per_billion =
        static_cast<std::uint32_t>(std::min(kLeastMargin + found.lost, kMostMargin) * Share::kWhole);
  if (watch.used_peak() > found.on_cards)
    found.plan.headroom = (watch.used_peak() - found.on_cards + found.processes - 1) / found.processes;
  if (const Card* card = watch.card(); card != nullptr && found.plan.card == 0) {
    found.plan.card = card->total;
    found.plan.card_name = card->name;
  }
  return conclude(arguments, found.plan, ended == 0 || watch.stopped() ? Exit::ok : Exit::warning);
}

}  // namespace gpupool::cli
