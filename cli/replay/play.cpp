// See play.h.
#include "cli/replay/play.h"

#include <time.h>

#include <algorithm>
#include <vector>

#include "cli/replay/pool_model.h"
#include "config/choices.h"
#include "pool/granule.h"
#include "pool/tape_options.h"

namespace gpupool::cli {
namespace {

Bytes rounded(Bytes bytes) { return (bytes + kGranuleBytes - 1) / kGranuleBytes * kGranuleBytes; }

// Of this thread, so that a busy host does not count.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) / 1e9;
}

std::uint64_t migrations_of(const PoolModel& pool) { return pool.stats().migrations.get(); }
std::uint64_t migrations_of(const Model&) { return 0; }

enum class WhenRefused : std::uint8_t { kGoOn, kStop };

// A template, so that our own pool is called without an indirection.
template <class Server>
Outcome play(const Trace& trace, Server& server, Order order = {}, WhenRefused when_refused = WhenRefused::kGoOn) {
  Outcome outcome;
  outcome.requests = trace.requests;
  std::vector<Bytes> held(trace.slots);  // 0: refused
  Bytes live = 0;
  Bytes requested = 0;
  Bytes reserved = server.reserved();
  Bytes peak = reserved;
  double first_half_us = 0;
  std::uint64_t first_migrations = 0;
  const Event* const middle = trace.events.data() + trace.events.size() / 2;
  const double begin = processor_seconds();
  order.each(trace.events, [&](const Event& event) {
    if (&event == middle) {
      first_half_us = server.driver_calls().microseconds();
      first_migrations = migrations_of(server);
    }
    if (event.bytes != 0) {
      if (!server.allocate(event.slot, event.bytes, event.stream)) {
        ++outcome.oom;
        return when_refused == WhenRefused::kGoOn;
      }
      held[event.slot] = event.bytes;
      requested += event.bytes;
      live += rounded(event.bytes);
      outcome.peak_requested_bytes = std::max(outcome.peak_requested_bytes, requested);
      outcome.peak_live_bytes = std::max(outcome.peak_live_bytes, live);
      if (server.reserved() > reserved) ++outcome.growth_steps;
      reserved = server.reserved();
      peak = std::max(peak, reserved);
    } else if (held[event.slot] != 0) {
      server.free(event.slot, event.stream);
      requested -= held[event.slot];
      live -= rounded(held[event.slot]);
      held[event.slot] = 0;
    }
    return true;
  });
  outcome.seconds = processor_seconds() - begin;
  outcome.reserved_peak_bytes = peak;
  outcome.needed_peak_bytes = peak;
  outcome.hits = trace.requests - outcome.oom - outcome.growth_steps;
  const DriverCalls calls = server.driver_calls();
  outcome.driver_us = calls.microseconds();
  outcome.late_driver_us = outcome.driver_us - first_half_us;
  outcome.late_migrations = migrations_of(server) - first_migrations;
  outcome.handles_taken = calls.create + calls.allocate;
  outcome.driver_calls = calls.count();
  return outcome;
}

PoolModel model_of(const ResolvedPool& pool) {
  const Placement placement = pool.options.backing == BackingKind::arena ? Placement::kGiven : Placement::kChosen;
  return {tape_options_for(pool), pool.total, placement};
}

}  // namespace

Outcome play_model(const Trace& trace, const std::string& strategy, Model& model) {
  Outcome outcome = play(trace, model);
  outcome.strategy = strategy;
  return outcome;
}

Outcome play_pool(const Trace& trace, const ResolvedPool& pool, Order order) {
  PoolModel model = model_of(pool);
  Outcome outcome = play(trace, model, order);
  outcome.strategy = choice_text(pool.options.strategy);
  const Stats& stats = model.stats();
  outcome.reserved_peak_bytes = stats.reserved.peak();
  outcome.needed_peak_bytes = stats.needed.peak();
  outcome.hits = stats.hits.get();
  outcome.same_stream_reuses = stats.same_stream_reuses.get();
  outcome.fences = stats.fences.get();
  outcome.records = stats.records.get();
  outcome.growth_steps = stats.growth_steps.get();
  outcome.migrations = stats.migrations.get();
  outcome.migrated_bytes = stats.migrated_bytes.get();
  outcome.trims = stats.trims.get();
  return outcome;
}

bool pool_serves(const Trace& trace, const ResolvedPool& pool, Order order) {
  PoolModel model = model_of(pool);
  return play(trace, model, order, WhenRefused::kStop).oom == 0;
}

}  // namespace gpupool::cli
