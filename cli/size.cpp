// `gpupool size`: how large the pool should be next time, by one counted run or by replaying traces.
#include <algorithm>
#include <cstdio>
#include <span>

#include "cli/cards.h"
#include "cli/console.h"
#include "cli/replay/bisect.h"
#include "cli/replay/setup.h"
#include "cli/size/plan.h"
#include "cli/trace/read.h"
#include "config/parse.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

constexpr Bytes kHandles[] = {128_MiB, 64_MiB, 32_MiB, 16_MiB, 8_MiB, 4_MiB, 2_MiB};  // fastest first

// A recorded trace says whose it is; of other formats the file's name is all there is.
SizeRow row_of(const Trace& trace, const Smallest& smallest) {
  SizeRow row{trace.name, smallest.size, {{"peak_live_bytes", smallest.peak_live}, {"waste", smallest.waste()}}};
  if (trace.origin.pid == 0) return row;
  row.who += " (rank " + trace.origin.rank + ", device " + std::to_string(trace.origin.device) + ")";
  row.facts["rank"] = trace.origin.rank;
  row.facts["device"] = trace.origin.device;
  return row;
}

// Each trace by itself, and all of them: as best fit is not monotone, the largest of these need not serve every one.
void add_reordered(SizePlan& plan, std::span<const Trace> traces, const ResolvedPool& pool) {
  for (std::size_t i = 0; i < traces.size(); ++i) {
    SizeRow& row = plan.rows[i];
    row.reordered = steady_pool(traces.subspan(i, 1), pool, row.need, kSizeStep);
    plan.reordered = std::max(plan.reordered, row.reordered);
  }
  if (traces.size() > 1) plan.reordered = steady_pool(traces, pool, plan.reordered, kSizeStep);
}

Exit by_traces(const Arguments& arguments) {
  const ReplaySetup setup = replay_setup("size", arguments);
  // What a trace needs does not depend on the card that it has to fit on.
  const ResolvedPool pool = resolve_for_replay({setup.options, kLargestCard});
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
  std::vector<SizeRow> rows;
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
    char wasted[32];
    std::snprintf(wasted, sizeof wasted, "%.2f%%", worst * 100);
    note("no pool.handle reaches the target; with the smallest one " + std::string{wasted} + " is wasted");
    status = Exit::warning;
  }
  SizePlan plan;
  plan.rows = std::move(rows);
  if (arguments.has("--margin")) {
    plan.margin = share_of("--margin", arguments.value("--margin"));
  } else {
    ResolvedPool with = pool;
    with.handle = handle;
    add_reordered(plan, traces, with);
  }
  plan.handle = has_target ? handle : setup.options.handle.bytes;
  if (arguments.has("--card")) {
    plan.card = setup.card;
  } else if (const std::vector<Card> cards = cards_seen(); !cards.empty()) {
    plan.card = cards.front().total;
    plan.card_name = cards.front().name;
  }
  return conclude(arguments, plan, status);
}

}  // namespace

Exit size_verb(const Arguments& arguments) {
  if (arguments.operands.empty() == arguments.program.empty()) {
    throw Problem(Exit::usage,
                  "traces or a program, and not both: gpupool size TRACE..., or gpupool size -- PROGRAM...");
  }
  for (const char* option : {"--unify", "--pooled", "--seconds", "--steps"}) {
    if (arguments.program.empty() && arguments.has(option))
      throw Problem(Exit::usage, std::string{option} + ": goes with a program; a trace is what it was");
  }
  if (!arguments.program.empty() && arguments.has("--target-waste"))
    throw Problem(Exit::usage, "--target-waste: goes with traces; gpupool run --trace records one");
  // Before the work, which may take hours.
  if (arguments.has("--write")) check_new_file(arguments.value("--write"));
  return arguments.program.empty() ? by_traces(arguments) : size_by_running(arguments);
}

}  // namespace gpupool::cli
