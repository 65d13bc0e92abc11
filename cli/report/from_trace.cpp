// See from_trace.h.
#include "cli/report/from_trace.h"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>

#include "cli/replay/pool_model.h"
#include "cli/replay/setup.h"
#include "config/choices.h"
#include "config/text.h"
#include "live/report.h"
#include "pool/granule.h"
#include "pool/tape_options.h"

namespace gpupool::cli {
namespace {

std::uint64_t rounded(std::uint64_t bytes) { return (bytes + kGranuleBytes - 1) / kGranuleBytes * kGranuleBytes; }

// A value and its highest so far.
void set(GaugeReport& gauge, std::uint64_t value) {
  gauge.current = value;
  gauge.peak = std::max(gauge.peak, value);
}

void copy(PoolReport& pool, const Stats& stats) {
#define GAUGE(name, unit, sentence) pool.name = {stats.name.current(), stats.name.peak()};
#define COUNTER(name, unit, sentence) pool.name = stats.name.get();
#include "pool/stats.def"
#undef GAUGE
#undef COUNTER
}

// The rows of stats.def that a recorded trace tells.
constexpr std::string_view kRecorded[] = {"reserved",   "live",           "requested",    "blocks",
                                          "requests",   "frees",          "growth_steps", "growth_bytes",
                                          "migrations", "migrated_bytes", "trims",        "trimmed_bytes"};
// Shares and sizes that would be made of others.
constexpr std::string_view kMadeOfOthers[] = {"waste", "hit_rate", "external_fragmentation", "advice_size"};
// What a replay does not tell of a card: it has no time, and no moment at which holes were looked at.
constexpr std::string_view kNotReplayed[] = {"host_wait_ns", "pool_ns", "external_fragmentation"};

bool takes_host_memory(std::string_view call) { return call.find("Host") != std::string_view::npos; }

std::vector<SizeReport> rows_of(const std::map<std::uint64_t, std::uint64_t>& sizes) {
  std::vector<SizeReport> rows;
  for (const auto& [bytes, requests] : sizes) rows.push_back({bytes, requests});
  return rows;
}

// Walks the events once, in their order.
class Walk {
 public:
  explicit Walk(const Trace& trace) : trace_(trace), held_(trace.slots) {
    out_.timeline.unit = trace.timed ? TimeUnit::microseconds : TimeUnit::events;
    pool_.limit = out_.timeline.limit = trace.origin.limit;
    if (!trace.placed) {
      const ResolvedPool resolved = resolve_for_replay(replay_setup("replay", {}));
      model_ = std::make_unique<PoolModel>(tape_options_for(resolved), resolved.total, Placement::kChosen);
      out_.timeline.note = "Placed by a replay with pool.strategy=auto_growth.";
      out_.report.note = "placed by a replay with pool.strategy=auto_growth: the numbers are the replay's";
    }
    pooled_ = model_ || std::ranges::any_of(trace.events,
                                            [](const Event& event) { return event.seen.served == Served::by_pool; });
    if (!pooled_) out_.timeline.note = "Placed by the driver.";
  }

  TraceReport finish() {
    for (std::size_t i = 0; i < trace_.events.size(); ++i) {
      take_marks(i);
      take(i, trace_.events[i]);
    }
    take_marks(trace_.events.size());
    const std::uint64_t end = out_.timeline.time.empty() ? 1 : out_.timeline.time.back() + 1;
    for (BlockSpan& block : held_) close(block, end);
    tell_numbers();
    shift_addresses();
    return std::move(out_);
  }

 private:
  std::uint64_t time_of(std::uint64_t index, std::uint64_t ns) const { return trace_.timed ? ns / 1000 : index; }

  std::uint64_t& requested_of(std::uint32_t slot) {
    if (requested_.size() <= slot) requested_.resize(slot + std::size_t{1});
    return requested_[slot];
  }

  PastReport& past_of(std::uint16_t call) {
    const std::string name = trace_.calls[call].empty() ? "unknown call" : trace_.calls[call];
    std::vector<PastReport>& past = out_.report.past;
    const auto found = std::ranges::find(past, name, &PastReport::api);
    return found == past.end() ? past.emplace_back(PastReport{name, 0, 0, 0}) : *found;
  }

  // On the map only where nothing else is: these addresses lie far from the pool's.
  void take_passed(std::uint64_t now, const Event& event) {
    std::uint64_t& requested = requested_of(event.slot);
    if (event.bytes != 0) {
      PastReport& past = past_of(event.seen.call);
      ++past.calls, past.bytes += event.bytes;
      ++passed_sizes_[std::bit_floor(event.bytes)];
      passed_bytes_ += event.bytes;
      requested = event.bytes;
      set(passed_, passed_.current + event.bytes);
      if (!pooled_) held_[event.slot] = {now, 0, event.seen.address, rounded(event.bytes)};
    } else {
      passed_.current -= requested;
      requested = 0;
      close(held_[event.slot], now);
    }
    point(now);
  }

  void take(std::size_t index, const Event& event) {
    const std::uint64_t now = time_of(index, event.seen.time_ns);
    if (event.seen.served == Served::by_driver) return take_passed(now, event);
    BlockSpan& held = held_[event.slot];
    if (event.bytes != 0) {
      ++pool_.requests;
      pooled_bytes_ += event.bytes;
      ++sizes_[std::bit_floor(event.bytes)];
      if (model_ && !model_->allocate(event.slot, event.bytes, event.stream)) return;
      held = {now, 0, model_ ? model_->address(event.slot) : event.seen.address, rounded(event.bytes)};
      requested_of(event.slot) = event.bytes;
      set(pool_.blocks, pool_.blocks.current + 1);
      set(pool_.live, pool_.live.current + held.bytes);
      set(pool_.requested, pool_.requested.current + event.bytes);
      if (event.seen.fenced) mark(now, TimelineMarkKind::fences, 1);
    } else if (held.bytes != 0) {
      if (model_) model_->free(event.slot, event.stream);
      ++pool_.frees;
      --pool_.blocks.current;
      pool_.live.current -= held.bytes;
      pool_.requested.current -= requested_[event.slot];
      close(held, now);
    }
    if (model_) take_replay(now);
    point(now);
  }

  // What the pool of the replay did at this event.
  void take_replay(std::uint64_t now) {
    const Stats& stats = model_->stats();
    const auto more = [&](TimelineMarkKind kind, std::uint64_t& seen, std::uint64_t total) {
      if (total > seen) mark(now, kind, total - seen);
      seen = total;
    };
    more(TimelineMarkKind::growth_steps, pool_.growth_steps, stats.growth_steps.get());
    more(TimelineMarkKind::migrations, pool_.migrations, stats.migrations.get());
    more(TimelineMarkKind::fences, pool_.fences, stats.fences.get());
    more(TimelineMarkKind::oom, refused_, stats.oom_capacity.get() + stats.oom_fragmentation.get());
    set(pool_.reserved, stats.reserved.current());
  }

  void take_marks(std::size_t index) {
    for (; next_mark_ < trace_.marks.size() && trace_.marks[next_mark_].event <= index; ++next_mark_) {
      const Mark& seen = trace_.marks[next_mark_];
      const std::uint64_t now = time_of(index, seen.time_ns);
      switch (seen.kind) {
        case MarkKind::growth:
          pool_.growth_steps += seen.count, pool_.growth_bytes += seen.bytes;
          mark(now, TimelineMarkKind::growth_steps, std::max<std::uint64_t>(seen.count, 1));
          break;
        case MarkKind::migration:
          pool_.migrations += seen.count, pool_.migrated_bytes += seen.bytes;
          mark(now, TimelineMarkKind::migrations, seen.count);
          break;
        case MarkKind::trim:
          pool_.trims += seen.count, pool_.trimmed_bytes += seen.bytes;
          break;
        case MarkKind::out_of_memory:
          ++past_of(seen.call).refused;
          mark(now, TimelineMarkKind::oom, 1);
          continue;
        case MarkKind::passed: {
          PastReport& past = past_of(seen.call);
          ++past.calls, past.bytes += seen.bytes;
          if (!takes_host_memory(past.api)) passed_bytes_ += seen.bytes;
          continue;
        }
        case MarkKind::pool_full:
          continue;
        case MarkKind::retired:
          break;
      }
      if (model_) continue;
      set(pool_.reserved, seen.reserved);
      point(now);
    }
  }

  void mark(std::uint64_t now, TimelineMarkKind kind, std::uint64_t count) {
    out_.timeline.marks.push_back({now, kind, count});
  }

  void point(std::uint64_t now) {
    out_.timeline.time.push_back(now);
    out_.timeline.reserved.push_back(std::max(pool_.reserved.current, pool_.live.current) +
                                     (pooled_ ? 0 : passed_.current));
    out_.timeline.live.push_back(pool_.live.current + passed_.current);
  }

  void close(BlockSpan& block, std::uint64_t now) {
    if (block.bytes == 0) return;
    block.end = std::max(now, block.begin + 1);
    out_.timeline.blocks.push_back(block);
    block = {};
  }

  void tell_numbers() {
    const Origin& origin = trace_.origin;
    ProcessReport& report = out_.report;
    report.file = trace_.name;
    report.executable = origin.executable.empty() ? trace_.name : origin.executable;
    report.pid = origin.pid;
    report.host = origin.host;
    report.rank = origin.rank;
    report.strategy = origin.strategy.empty() ? "auto_growth (replay)" : origin.strategy;
    report.wall_ms = trace_.events.empty() ? 0 : trace_.events.back().seen.time_ns / 1'000'000;
    report.device = origin.device;
    const double all = double(pooled_bytes_) + double(passed_bytes_);
    report.coverage = all != 0 ? double(pooled_bytes_) / all : 0;
    report.passed_live_peak = passed_.peak;
    report.passed_sizes = rows_of(passed_sizes_);
    if (pooled_) return tell_pool();
    const Advice advice = advise(passed_.peak, passed_.peak, 0);
    report.advice_size = advice.size;
    report.advice = "pool.size=" + readable(advice.size) + ": " + advice.reason;
  }

  void tell_pool() {
    const Origin& origin = trace_.origin;
    if (model_) {
      copy(pool_, model_->stats());
      const Advice advice = advise(pool_.needed.peak, pool_.live.peak, 0);
      pool_.advice_size = advice.size;
      pool_.advice = "pool.size=" + readable(advice.size) + ": " + advice.reason;
      pool_.waste = share_lost(pool_.live.peak, pool_.needed.peak);
      pool_.hit_rate = pool_.requests ? double(pool_.hits) / double(pool_.requests) : 0;
      pool_.not_recorded.assign(std::begin(kNotReplayed), std::end(kNotReplayed));
    } else {
      const auto add_unless_recorded = [&](std::string_view row) {
        if (std::ranges::find(kRecorded, row) == std::end(kRecorded)) pool_.not_recorded.emplace_back(row);
      };
#define GAUGE(name, unit, sentence) add_unless_recorded(#name);
#define COUNTER(name, unit, sentence) add_unless_recorded(#name);
#include "pool/stats.def"
#undef GAUGE
#undef COUNTER
      for (const std::string_view row : kMadeOfOthers) pool_.not_recorded.emplace_back(row);
      pool_.advice = "gpupool size finds pool.size by a replay of this trace";
    }
    pool_.device = origin.device;
    pool_.card = origin.card.empty() ? "no card" : origin.card;
    pool_.uuid = origin.uuid;
    pool_.internal_waste = share_lost(pool_.requested.peak, pool_.live.peak);
    pool_.sizes = rows_of(sizes_);
    out_.report.pools.push_back(pool_);
  }

  // From the lowest one, which is what a picture begins with.
  void shift_addresses() {
    std::vector<BlockSpan>& blocks = out_.timeline.blocks;
    if (blocks.empty()) return;
    const std::uint64_t lowest = std::ranges::min_element(blocks, {}, &BlockSpan::address)->address;
    for (BlockSpan& block : blocks) block.address -= lowest;
  }

  const Trace& trace_;
  bool pooled_ = false;               // there is a pool: a replay's, or one that served any request
  std::unique_ptr<PoolModel> model_;  // null: the trace tells addresses
  std::vector<BlockSpan> held_;       // by slot; 0 bytes: nothing
  std::vector<std::uint64_t> requested_;
  std::map<std::uint64_t, std::uint64_t> sizes_;
  std::map<std::uint64_t, std::uint64_t> passed_sizes_;
  GaugeReport passed_;
  std::uint64_t pooled_bytes_ = 0;
  std::uint64_t passed_bytes_ = 0;
  std::uint64_t refused_ = 0;  // by the replay
  std::size_t next_mark_ = 0;
  PoolReport pool_;
  TraceReport out_;
};

}  // namespace

TraceReport report_of(const Trace& trace) { return Walk(trace).finish(); }

}  // namespace gpupool::cli
