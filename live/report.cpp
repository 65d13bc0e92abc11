// See report.h: the rows.
#include "live/report.h"

#include <algorithm>

#include "config/text.h"

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

ReportSection pool_section(const PoolSlot& pool, std::uint64_t pinned) {
  const Stats& stats = pool.stats;
  ReportSection section{.list = "pools",
                        .title = "device " + std::to_string(pool.device) + " (" + pool.card.get() + ")"};
  Rows rows(section);
  rows.number("device", ReportUnit::kCount, pool.device, "CUDA ordinal");
  rows.text("uuid", pool.uuid.get(), "the card");
  rows.text("card", pool.card.get(), "its name");
  rows.text("context", pool.created == 0 ? "primary" : "created", "whose memory it is");
  rows.number("pre_reserved", ReportUnit::kBytes, pool.pre_reserved, "pool.size on this card");
  rows.number("limit", ReportUnit::kBytes, pool.limit, "pool.max on this card, less the headroom");
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
  rows.number("largest_hole", ReportUnit::kBytes, pool.largest_hole.get(), "the largest hole, when last looked at");
  rows.number("inactive_split", ReportUnit::kBytes, pool.hole_bytes.get(), "bytes in holes, when last looked at");
  rows.share("external_fragmentation", share_lost(pool.largest_hole.get(), pool.hole_bytes.get()),
             "holes' bytes outside the largest hole, when last looked at");
  rows.share("external_fragmentation.peak",
             double(std::min<std::uint64_t>(pool.fragmentation_at_peak_millionths.get(), 1'000'000)) / 1e6,
             "the same when most was live");
  const Advice advice = advise(stats.needed.peak(), stats.live.peak(), pool.limit);
  rows.number("advice_size", ReportUnit::kBytes, advice.size, "pool.size for the next run");
  rows.text("advice", "pool.size=" + readable(advice.size) + ": " + advice.reason, "why", Audience::kEveryone);
  const std::string hint = hint_at_sync(pool.unwaited_frees.load(), pinned);
  if (!hint.empty()) rows.text("hint", hint, "what may differ from the plain driver", Audience::kEveryone);
  for (unsigned bucket = 0; bucket < SizeHistogram::kBuckets; ++bucket)
    section.size_counts.push_back(pool.sizes.count(bucket));
  return section;
}

ReportSection past_section(const CallCount& count) {
  ReportSection section{.list = "past_the_pool", .title = count.name.get()};
  Rows rows(section);
  rows.text("api", count.name.get(), "the driver's function");
  rows.number("calls", ReportUnit::kCount, count.calls.load(), "calls that the driver served");
  rows.number("bytes", ReportUnit::kBytes, count.bytes.load(), "bytes that they asked for");
  rows.number("refused", ReportUnit::kCount, count.refused.load(), "calls that were out of memory");
  rows.number("rescued", ReportUnit::kCount, count.rescued.load(), "calls that succeeded after memory was given back");
  return section;
}

std::string_view text_of(Ending ending) {
  switch (ending) {
    case Ending::kExit:
      return "exit";
    case Ending::kKilled:
      return "killed";
    case Ending::kRunning:
      return "running";
  }
  return "";
}

template <class Visit>
void each_call(const Page& page, Visit visit) {
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(page.call_count, Page::kMostCalls); ++i) visit(page.calls[i]);
}

}  // namespace

Report collect(const Page& page, const std::vector<const PoolSlot*>& pools, Ending ending) {
  Report report;
  std::uint64_t pooled = 0;
  std::uint64_t passed = 0;
  std::uint64_t pinned = 0;  // in all, given back or not
  for (const PoolSlot* pool : pools) pooled += pool->sizes.bytes();
  each_call(page, [&](const CallCount& count) { (count.device_memory ? passed : pinned) += count.bytes.load(); });
  const PageIdentity& who = page.identity;
  ReportSection& about =
      report.sections.emplace_back(ReportSection{.list = "process", .title = "process " + std::to_string(who.pid)});
  Rows rows(about);
  rows.text("executable", who.executable.get(), "the program");
  rows.number("pid", ReportUnit::kCount, who.pid, "its process");
  rows.text("host", who.host.get(), "its host");
  rows.text("rank", who.rank.get(), "its rank in the job");
  rows.text("strategy", who.strategy.get(), "pool.strategy");
  rows.text("ended", std::string{text_of(ending)}, "exit, killed, or running");
  rows.number("wall_ms", ReportUnit::kCount, page.seen_ms.get(), "milliseconds since the first CUDA call");
  rows.number("pooled", ReportUnit::kBytes, pooled, "bytes asked for and served from a pool, in all");
  rows.number("passed", ReportUnit::kBytes, passed,
              "bytes of device memory asked for and served by the driver, in all");
  rows.number("passed_live.peak", ReportUnit::kBytes, page.passed.peak.load(), "the driver's share at its peak");
  if (who.strategy.get() == to_text(Strategy::passthrough)) {
    const Advice advice = advise(page.passed.peak.load(), page.passed.peak.load(), 0);
    rows.number("advice_size", ReportUnit::kBytes, advice.size, "pool.size for the next run");
    rows.text("advice", "pool.size=" + readable(advice.size) + ": " + advice.reason, "why", Audience::kEveryone);
  }
  const double all = double(pooled) + double(passed);
  rows.share("coverage", all != 0 ? double(pooled) / all : 0.0, "share of bytes that were pooled");
  for (const PoolSlot* pool : pools) report.sections.push_back(pool_section(*pool, pinned));
  each_call(page, [&](const CallCount& count) {
    if (count.bytes.load() || count.refused.load() || count.rescued.load())
      report.sections.push_back(past_section(count));
  });
  const std::uint64_t points = std::min<std::uint64_t>(page.curve.count.load(), PageCurve::kMostPoints);
  for (std::uint64_t i = 0; i < points; ++i) {
    const CurvePoint& point = page.curve.points[i];
    if (report.curve.empty() || point.ms >= report.curve.back().ms) report.curve.push_back(point);
  }
  return report;
}

bool used_device_memory(const Page& page, const std::vector<const PoolSlot*>& pools) {
  bool used = page.passed.peak.load() != 0;
  for (const PoolSlot* pool : pools) used = used || pool->stats.requests.get() != 0;
  each_call(page, [&](const CallCount& count) { used = used || count.bytes.load() != 0; });
  return used;
}

}  // namespace gpupool
