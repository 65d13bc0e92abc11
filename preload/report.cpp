// See report.h: the rows, and what happens at the end of the process.
#include "preload/real.h"

#include "preload/report.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "config/text.h"
#include "preload/process.h"
#include "preload/quiet_signals.h"
#include "preload/red_zones.h"
#include "preload/watch.h"

namespace gpupool {
namespace {

constexpr ReportUnit unit_of(std::string_view name) {
  return name == "bytes" ? ReportUnit::kBytes : name == "ns" ? ReportUnit::kNanoseconds : ReportUnit::kCount;
}

// What people look for first; the file has the rest.
Audience audience_of(std::string_view name) {
  constexpr std::string_view kShown[] = {"reserved.peak", "live.peak",       "overflow.peak", "overflows",
                                         "needed.peak",   "requests",        "fences",        "host_waits",
                                         "migrations",    "passed_live.peak"};
  return std::ranges::find(kShown, name) != std::end(kShown) ? Audience::kEveryone : Audience::kFile;
}

class Rows {
 public:
  explicit Rows(ReportSection& section) : section_(section) {}

  void number(std::string name, ReportUnit unit, std::uint64_t value, std::string sentence) {
    const Audience audience = audience_of(name);
    section_.rows.push_back({std::move(name), unit, value, std::move(sentence), audience});
  }
  void share(std::string name, double value, std::string sentence) {
    section_.rows.push_back({std::move(name), ReportUnit::kShare, value, std::move(sentence), Audience::kEveryone});
  }
  void text(std::string name, std::string value, std::string sentence, Audience audience = Audience::kFile) {
    section_.rows.push_back({std::move(name), ReportUnit::kText, std::move(value), std::move(sentence), audience});
  }
  void gauge(const std::string& name, ReportUnit unit, const Gauge& gauge, const std::string& sentence) {
    number(name, unit, gauge.current(), sentence);
    number(name + ".peak", unit, gauge.peak(), sentence + ", at its peak");
  }

 private:
  ReportSection& section_;
};

// In all, given back or not.
std::uint64_t pinned_bytes(Process& process) {
  std::uint64_t sum = 0;
  for (unsigned row = 0; row < kHookRows; ++row) {
    if (takes_host_memory(HookRow(row))) sum += process.calls.of(HookRow(row)).bytes.load();
  }
  return sum;
}

ReportSection pool_section(const Home& home, Depth depth, std::uint64_t pinned) {
  const Stats& stats = home.tape()->stats();
  ReportSection section{.list = "pools", .title = "device " + std::to_string(home.device()) + " (" + home.card() + ")"};
  Rows rows(section);
  rows.number("device", ReportUnit::kCount, static_cast<std::uint64_t>(home.device()), "CUDA ordinal");
  rows.text("uuid", home.uuid(), "the card");
  rows.text("card", home.card(), "its name");
  rows.text("context", home.owner() == Home::Owner::kPrimary ? "primary" : "created", "whose memory it is");
  rows.number("pre_reserved", ReportUnit::kBytes, home.resolved().size, "pool.size on this card");
  rows.number("limit", ReportUnit::kBytes, home.resolved().max, "pool.max on this card, less the headroom");
#define GAUGE(name, unit, sentence) rows.gauge(#name, unit_of(#unit), stats.name, sentence);
#define COUNTER(name, unit, sentence) rows.number(#name, unit_of(#unit), stats.name.get(), sentence);
#include "pool/stats.def"
#undef GAUGE
#undef COUNTER
  rows.share("waste", share_lost(stats.live.peak(), stats.needed.peak()),
             "needed memory that live blocks at their peak did not fill");
  rows.share("internal_waste", share_lost(stats.requested.peak(), stats.live.peak()),
             "bytes in blocks that nobody asked for");
  rows.share("hit_rate", stats.requests.get() ? double(stats.hits.get()) / double(stats.requests.get()) : 0.0,
             "requests served by an existing hole");
  if (depth == Depth::kFull) {
    const HoleSummary holes = home.tape()->holes();
    rows.number("largest_hole", ReportUnit::kBytes, holes.largest, "the largest hole");
    rows.number("inactive_split", ReportUnit::kBytes, holes.bytes, "bytes in holes");
    rows.share("external_fragmentation", holes.external_fragmentation(), "holes' bytes outside the largest hole, now");
  }
  rows.share("external_fragmentation.peak", home.fragmentation_at_peak(), "the same when most was live");
  const Advice advice = advise(stats.needed.peak(), stats.live.peak(), home.resolved().max);
  rows.number("advice_size", ReportUnit::kBytes, advice.size, "pool.size for the next run");
  rows.text("advice", "pool.size=" + readable(advice.size) + ": " + advice.reason, "why", Audience::kEveryone);
  const std::string hint = hint_at_sync(home.unwaited_frees(), pinned);
  if (!hint.empty()) rows.text("hint", hint, "what may differ from the plain driver", Audience::kEveryone);
  for (unsigned bucket = 0; bucket < SizeHistogram::kBuckets; ++bucket)
    section.size_counts.push_back(home.sizes().count(bucket));
  return section;
}

bool takes_memory(HookRow row) {
  return kHooks[row].kind == HookKind::POOL || (kHooks[row].kind == HookKind::WATCH && !takes_host_memory(row));
}

ReportSection past_section(HookRow row, const CallCount& count) {
  ReportSection section{.list = "past_the_pool", .title = kHooks[row].symbol};
  Rows rows(section);
  rows.text("api", kHooks[row].symbol, "the driver's function");
  rows.number("calls", ReportUnit::kCount, count.calls.load(), "calls that the driver served");
  rows.number("bytes", ReportUnit::kBytes, count.bytes.load(), "bytes that they asked for");
  rows.number("refused", ReportUnit::kCount, count.refused.load(), "calls that were out of memory");
  rows.number("rescued", ReportUnit::kCount, count.rescued.load(),
              "calls that succeeded after a pool gave memory back");
  return section;
}

std::uint64_t milliseconds_since(std::int64_t start_ns) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>((std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec - start_ns) / 1'000'000);
}

bool used_device_memory(Process& process) {
  bool used = process.direct.peak() != 0;
  process.registry.each(
      [&](const Home& home) { used = used || (home.tape() && home.tape()->stats().requests.get() != 0); });
  for (unsigned row = 0; row < kHookRows; ++row) used = used || process.calls.of(HookRow(row)).bytes.load() != 0;
  return used;
}

void say(const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = write(STDERR_FILENO, text.data() + done, text.size() - done);
    if (written <= 0) return;
    done += static_cast<std::size_t>(written);
  }
}

}  // namespace

Report collect(Process& process, Depth depth) {
  Report report;
  std::uint64_t pooled = 0;
  std::uint64_t passed = 0;
  process.registry.each([&](const Home& home) { pooled += home.sizes().bytes(); });
  for (unsigned row = 0; row < kHookRows; ++row) {
    if (takes_memory(HookRow(row))) passed += process.calls.of(HookRow(row)).bytes.load();
  }
  ReportSection& about =
      report.sections.emplace_back(ReportSection{.list = "process", .title = "process " + std::to_string(process.pid)});
  Rows rows(about);
  rows.text("executable", setup().executable, "the program");
  rows.number("pid", ReportUnit::kCount, static_cast<std::uint64_t>(process.pid), "its process");
  rows.text("host", expand_path("%h", process.pid), "its host");
  rows.text("rank", expand_path("%r", process.pid), "its rank in the job");
  rows.text("strategy", to_text(setup().options.pool.strategy), "pool.strategy");
  rows.number("wall_ms", ReportUnit::kCount, milliseconds_since(process.started_ns),
              "milliseconds since the first CUDA call");
  rows.number("pooled", ReportUnit::kBytes, pooled, "bytes asked for and served from a pool, in all");
  rows.number("passed", ReportUnit::kBytes, passed,
              "bytes of device memory asked for and served by the driver, in all");
  rows.number("passed_live.peak", ReportUnit::kBytes, process.direct.peak(), "the driver's share at its peak");
  if (setup().options.pool.strategy == Strategy::passthrough) {
    const Advice advice = advise(process.direct.peak(), process.direct.peak(), 0);
    rows.number("advice_size", ReportUnit::kBytes, advice.size, "pool.size for the next run");
    rows.text("advice", "pool.size=" + readable(advice.size) + ": " + advice.reason, "why", Audience::kEveryone);
  }
  rows.share("coverage", pooled + passed ? double(pooled) / double(pooled + passed) : 0.0,
             "share of bytes that were pooled");
  const std::uint64_t pinned = pinned_bytes(process);
  process.registry.each([&](const Home& home) {
    if (home.tape()) report.sections.push_back(pool_section(home, depth, pinned));
  });
  for (unsigned row = 0; row < kHookRows; ++row) {
    const CallCount& count = process.calls.of(HookRow(row));
    if (count.bytes.load() || count.refused.load() || count.rescued.load())
      report.sections.push_back(past_section(HookRow(row), count));
  }
  report.curve = process.curve.points();
  return report;
}

void finish_process() {
  if (!has_process() || process().pid != getpid()) return;
  try {
    Process& ending = process();
    const QuietSignals quiet;
    const Depth depth = Guard::inside() ? Depth::kCountersOnly : Depth::kFull;
    const Guard guard;
    if (depth == Depth::kFull) {
      ending.exports.stop();
      ending.registry.each([](Home& home) {
        home.stop_prefill();
        if (RedZones* zones = home.red_zones()) zones->finish();
      });
    }
    ending.trace.finish();
    if (!used_device_memory(ending)) return;
    if (depth == Depth::kFull) sample(guard);
    const StatsOptions& stats = setup().options.stats;
    const Report report = collect(ending, depth);
    if (stats.summary) say(report_text(report));
    if (!stats.path.empty() && write_report(expand_path(stats.path, ending.pid), report_json(report)).empty()) {
      const std::string path = expand_path(stats.path, ending.pid);
      say("gpupool: cannot write the report " + escaped(path, path.size()) + "\n");
    }
  } catch (...) {
    return;  // no host memory for a report
  }
}

}  // namespace gpupool
