// `gpupool size -- PROGRAM`: the need of every process of one run, and what was used beside the pool.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "cli/console.h"
#include "cli/counted_run.h"
#include "cli/launch.h"
#include "cli/replay/setup.h"
#include "cli/report/file.h"
#include "cli/size/caches.h"
#include "cli/size/plan.h"
#include "cli/size/watch.h"
#include "config/table.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

// A tenth, and as much more as holes took: whoever lost memory to them once may lose more to them next time.
constexpr double kLeastMargin = 0.1;
constexpr double kMostMargin = 0.3;

template <class Number>
std::optional<Number> number_of(const Arguments& arguments, std::string_view option, std::string_view unit) {
  if (!arguments.has(option)) return std::nullopt;
  const std::string text = arguments.value(option);
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || !(number > 0) || !(number < 1e9)) {
    throw Problem(Exit::usage, std::string{option} + ": " + in_quotes(text) + " is no number of " + std::string{unit} +
                                   " above 0 and below a billion");
  }
  return number;
}

// Told, because whoever waits for a report there, be it another size around this one, waits in vain.
void tell_what_gets_nothing(const Environment& environment) {
  for (const char* key : {"stats.path", "stats.pages"}) {
    const std::string given = value_of(environment, environment_name(key));
    if (given.empty()) continue;
    note(std::string{key} + "=" + escaped(given, given.size()) + " gets nothing of this run, which is counted here");
  }
}

struct Found {
  SizePlan plan;
  double lost = 0;      // the greatest share of a need that holes took
  Bytes on_cards = 0;   // what the processes had of them by our count, at their peaks
  Bytes processes = 0;  // that used device memory
  Bytes refused = 0;    // requests that were out of memory
};

void add_rows(Found& found, const ProcessReport& report) {
  const std::string who = "rank " + report.rank + ": " + report.executable + " (process " + std::to_string(report.pid);
  const nlohmann::ordered_json facts{{"pid", report.pid}, {"rank", report.rank}, {"coverage", report.coverage}};
  const std::size_t before = found.plan.rows.size();
  for (const PastReport& past : report.past) found.refused += past.refused;
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
  const RunLimits limits{number_of<double>(arguments, "--seconds", "seconds"),
                         number_of<unsigned>(arguments, "--steps", "steps")};
  if (arguments.has("--margin")) found.plan.margin = share_of("--margin", arguments.value("--margin"));
  if (arguments.has("--card")) found.plan.card = card_of(arguments);
  Environment environment = own_environment();
  prepare(environment, "size", arguments);
  set(environment, {"pool.strategy", arguments.has("--pooled") ? "auto_growth" : "passthrough"});
  tell_what_gets_nothing(environment);
  const CountedRun run(environment);
  if (arguments.has("--unify")) {
    for (const std::string& line : unify(environment)) note(line);
    found.plan.advice.push_back(
        "measured with --unify: the next run needs it, too: gpupool run --unify --config FILE -- PROGRAM");
  }
  RunWatch watch(run, limits);
  CacheWatch caches(environment, run.mark());
  const int ended = run_and_wait(arguments.program, environment, run.mark(), [&](double seconds) {
    caches.look(seconds);
    return watch.look(seconds);
  });
  watch.finish();
  for (const std::string& framework : caches.frameworks())
    found.plan.advice.push_back(
        framework +
        " has a cache of its own, which was counted as needed; size --unify and then run --unify do without it");
  for (const ProcessReport& report : run.reports()) add_rows(found, report);
  const bool stopped = !watch.stopped_by().empty();
  if (stopped) {
    note("the program was stopped after " + watch.stopped_by() + "; what it would have needed later is not known");
  } else if (ended != 0) {
    note("the program ended with status " + std::to_string(ended));
  }
  if (found.refused != 0)
    note("out of memory: " + std::to_string(found.refused) + " requests; it needs more than was counted here");
  if (found.plan.rows.empty())
    throw Problem(Exit::broken,
                  "no process of it used device memory through the preload; gpupool doctor -- PROGRAM may know why");
  if (!arguments.has("--margin"))
    found.plan.margin.parts_per_billion = static_cast<std::uint32_t>(
        std::min(std::ceil((kLeastMargin + found.lost) * 100) / 100, kMostMargin) * Share::kWhole);
  if (watch.outside()) {
    found.plan.headroom = *watch.outside();
  } else if (watch.used_peak() > found.on_cards) {  // they came and went between two looks
    found.plan.headroom = (watch.used_peak() - found.on_cards + found.processes - 1) / found.processes;
  }
  if (watch.is_shared())
    found.plan.advice.push_back(
        "others used the card meanwhile; what they took counts as this program's, so that less pool.headroom may do");
  if (const Card* card = watch.card(); card != nullptr && found.plan.card == 0) {
    found.plan.card = card->total;
    found.plan.card_name = card->name;
  }
  return conclude(arguments, found.plan, (ended == 0 || stopped) && found.refused == 0 ? Exit::ok : Exit::warning);
}

}  // namespace gpupool::cli
