// See scheduler.h. Who executes: whichever thread waits. Operations run under the big lock, except host functions of
// the program, which run without it and are marked `running` meanwhile.
#include "tests/simcuda/scheduler.h"

#include <dirent.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <unordered_set>

#include "tests/simcuda/call.h"

namespace gpupool::sim {
namespace {

constexpr size_t kQueueLimit = 1024;    // a submission to a longer queue makes room first, as launch queues do
constexpr uint64_t kTicksPerTurn = 64;  // others may run between two turns of a long kernel
constexpr unsigned kPatience = 2;       // queries that are answered "not ready" before the device gets on

struct Clock {
  Schedule schedule = settings().schedule;
  std::mt19937_64 random{settings().seed};
  uint64_t now = 0;
  uint64_t next_sequence = 1;
  uint64_t pending = 0;
  uint64_t progress = 0;  // changes whenever something is submitted or done
  unsigned running = 0;   // host functions of the program
  std::condition_variable_any changed;
};

Clock& clock() {
  static Clock* const instance = new Clock;
  return *instance;
}

uint64_t below(uint64_t limit) { return clock().random() % limit; }

void progressed() {
  ++clock().progress;
  clock().changed.notify_all();
}

bool waits_done(Op& op) {
  while (!op.waits.empty() && is_done(op.waits.back())) op.waits.pop_back();
  return op.waits.empty();
}

bool can_run(Op& op) { return !op.running && !op.never && waits_done(op) && (!op.work.ready || op.work.ready()); }

void finish(Op& op) {
  op.done = true;
  op.finished_at = ++clock().now;
  --clock().pending;
  Stream& stream = *op.stream;
  Context& context = *op.context;
  if (stream.tail.get() == &op) stream.tail.reset();
  const OpRef keep = std::move(stream.queue.front());
  stream.queue.pop_front();
  keep->work = Work{};
  if (stream.destroyed && stream.queue.empty()) {
    auto& streams = context.streams;
    streams.erase(std::find_if(streams.begin(), streams.end(), [&](const StreamRef& s) { return s.get() == &stream; }));
  }
  progressed();
}

void run_work(Op& op) {
  Context& root = root_of(*op.context);
  if (root.error != CUDA_SUCCESS) return;
  for (const Access& access : op.work.accesses) {
    if (!access.is_device || access.size == 0) continue;
    if (reachable(access.start, access.size, root.device->ordinal, op.work.checks_peer_access ? &root : nullptr))
      continue;
    std::fprintf(stderr, "simcuda: illegal address: %s touches 0x%llx + %llu on device %d\n", op.work.name,
                 static_cast<unsigned long long>(access.start), static_cast<unsigned long long>(access.size),
                 root.device->ordinal);
    root.error = CUDA_ERROR_ILLEGAL_ADDRESS;
    return;
  }
  if (!op.work.run) return;
  if (!op.work.calls_program) return op.work.run();
  op.running = true;
  ++clock().running;
  big_lock().unlock();
  op.work.run();
  big_lock().lock();
  --clock().running;
  op.running = false;
}

bool writes(const Op& op) {
  return std::any_of(op.work.accesses.begin(), op.work.accesses.end(),
                     [](const Access& access) { return access.touch == Touch::kWrite; });
}

// Late: writes before reads, the newest first. Eager: in the order of submission.
OpRef pick(std::vector<OpRef> candidates) {
  std::sort(candidates.begin(), candidates.end(),
            [](const OpRef& a, const OpRef& b) { return a->sequence < b->sequence; });
  switch (clock().schedule) {
    case Schedule::kEager:
      return candidates.front();
    case Schedule::kRandom:
      return candidates[below(candidates.size())];
    case Schedule::kLate:
      break;
  }
  const auto newest_write =
      std::find_if(candidates.rbegin(), candidates.rend(), [](const OpRef& op) { return writes(*op); });
  return newest_write == candidates.rend() ? candidates.back() : *newest_write;
}

std::vector<OpRef> runnable_anywhere() {
  std::vector<OpRef> heads;
  for (Context* context : state().contexts.all()) {
    for_each_stream(*context, [&](Stream& stream) {
      if (!stream.queue.empty() && can_run(*stream.queue.front())) heads.push_back(stream.queue.front());
    });
  }
  return heads;
}

void take_turn(const std::vector<OpRef>& candidates) {
  step(pick(candidates), clock().schedule == Schedule::kLate ? Races::kExpose : Races::kIgnore);
}

bool alone_in_process() {
  DIR* tasks = opendir("/proc/self/task");
  if (!tasks) return false;
  unsigned threads = 0;
  while (const dirent* entry = readdir(tasks)) threads += entry->d_name[0] != '.';
  closedir(tasks);
  return threads == 1;
}

[[noreturn]] void report_stuck() {
  std::fprintf(stderr, "simcuda: deadlock: a thread waits for the device, and no operation can run\n");
  for (Context* context : state().contexts.all()) {
    for_each_stream(*context, [&](Stream& stream) {
      if (stream.queue.empty()) return;
      Op& head = *stream.queue.front();
      std::fprintf(stderr, "simcuda:   device %d stream %llu: %zu queued, first is %s, %s\n", context->device->ordinal,
                   static_cast<unsigned long long>(stream.id), stream.queue.size(), head.work.name,
                   !head.waits.empty() ? "behind other streams" : "not ready");
    });
  }
  std::abort();
}

// Nothing can run: sleep until something changes. Memory that a flag is polled in may change without a call.
void sleep_until_change(std::chrono::steady_clock::time_point stuck_since) {
  const uint64_t before = clock().progress;
  const bool may_change = clock().running > 0;
  if (!may_change && alone_in_process()) report_stuck();
  const auto limit = std::chrono::milliseconds(settings().deadlock_ms);
  clock().changed.wait_for(big_lock(), std::chrono::milliseconds(1));
  if (!may_change && clock().progress == before && std::chrono::steady_clock::now() - stuck_since > limit)
    report_stuck();
}

}  // namespace

void set_schedule(Schedule schedule, uint64_t seed) {
  clock().schedule = schedule;
  clock().random.seed(seed);
}

Context& root_of(Context& context) { return context.parent ? *context.parent : context; }

void for_each_stream(Context& context, const std::function<void(Stream&)>& visit) {
  if (context.legacy) visit(*context.legacy);
  for (auto& [thread, stream] : context.per_thread) visit(*stream);
  for (const StreamRef& stream : context.streams) visit(*stream);
}

void add_wait(Op& op, const OpRef& wait) {
  if (!wait || is_done(wait)) return;
  if (!wait->stream && !wait->never) {
    // What only stands for others is replaced by them, so that waits never form chains.
    for (const OpRef& each : std::vector<OpRef>(wait->waits)) add_wait(op, each);
    return;
  }
  for (OpRef& known : op.waits) {
    if (!known->stream || known->stream != wait->stream) continue;
    if (known->sequence < wait->sequence) known = wait;
    return;
  }
  op.waits.push_back(wait);
}

OpRef enqueue(Stream& stream, Work work) {
  if (stream.queue.size() >= kQueueLimit) {
    const OpRef earlier = stream.queue[stream.queue.size() - kQueueLimit];  // the queue forgets it when it is done
    run_towards(earlier);
  }
  Context& context = *stream.context;
  auto op = std::make_shared<Op>();
  op->sequence = clock().next_sequence++;
  op->stream = &stream;
  op->context = &context;
  op->ticks_left = work.ticks;
  op->work = std::move(work);
  add_wait(*op, context.barrier);
  if (context.parent) add_wait(*op, context.parent->barrier);
  if (stream.kind == StreamKind::kLegacy) {
    for_each_stream(context, [&](Stream& other) {
      if (other.is_blocking()) add_wait(*op, other.tail);
    });
  } else if (stream.is_blocking()) {
    add_wait(*op, context.legacy->tail);
  }
  stream.queue.push_back(op);
  stream.tail = op;
  ++clock().pending;
  progressed();
  if (clock().schedule == Schedule::kEager) run_everything();
  if (clock().schedule == Schedule::kRandom && below(4) == 0) {
    for (uint64_t turns = below(8); turns > 0; --turns) {
      if (const auto candidates = runnable_anywhere(); !candidates.empty()) take_turn(candidates);
    }
  }
  return op;
}

OpRef everything_submitted(Context& context) {
  auto op = std::make_shared<Op>();
  op->sequence = clock().next_sequence++;
  op->context = &context;
  for (Context* each : state().contexts.all()) {
    if (each != &context && each->parent != &context) continue;
    for_each_stream(*each, [&](Stream& stream) { add_wait(*op, stream.tail); });
  }
  return op;
}

void add_barrier(Context& context, const OpRef& op) {
  auto barrier = std::make_shared<Op>();
  barrier->sequence = clock().next_sequence++;
  barrier->context = &context;
  add_wait(*barrier, context.barrier);
  add_wait(*barrier, op);
  context.barrier = is_done(barrier) ? nullptr : barrier;
}

OpRef never_done(Context& context) {
  auto op = std::make_shared<Op>();
  op->sequence = clock().next_sequence++;
  op->context = &context;
  op->never = true;
  return op;
}

bool is_done(const OpRef& op) {
  if (!op || op->done) return true;
  if (op->stream || op->never) return false;
  if (!waits_done(*op)) return false;
  op->done = true;
  op->finished_at = clock().now;
  return true;
}

std::vector<OpRef> runnable_towards(const OpRef& target) {
  std::vector<OpRef> result;
  std::vector<OpRef> open{target};
  std::unordered_set<const Stream*> seen;
  while (!open.empty()) {
    const OpRef op = std::move(open.back());
    open.pop_back();
    if (is_done(op)) continue;
    OpRef head = op;
    if (op->stream) {
      if (!seen.insert(op->stream).second) continue;
      head = op->stream->queue.front();
      if (can_run(*head)) {
        result.push_back(head);
        continue;
      }
    }
    open.insert(open.end(), head->waits.begin(), head->waits.end());
  }
  return result;
}

void step(const OpRef& op, Races races) {
  if (races == Races::kExpose) {
    expose_races(op);
    if (op->done || !can_run(*op)) return;
  }
  if (op->ticks_left > 1) {
    const uint64_t turn = std::min(op->ticks_left - 1, kTicksPerTurn);
    op->ticks_left -= turn;
    clock().now += turn;
    return;
  }
  run_work(*op);
  finish(*op);
}

void wait_until_done(const OpRef& op) {
  auto last_progress = std::chrono::steady_clock::now();
  while (!is_done(op)) {
    std::vector<OpRef> candidates = runnable_towards(op);
    const bool look_around = clock().schedule == Schedule::kRandom && below(2) == 0;
    if (candidates.empty() || look_around) {
      // What blocks us (a flag) may be lifted by work that nothing orders before us.
      std::vector<OpRef> others = runnable_anywhere();
      if (!others.empty()) candidates = std::move(others);
    }
    if (candidates.empty()) {
      const uint64_t before = clock().progress;
      sleep_until_change(last_progress);
      if (clock().progress != before || clock().running > 0) last_progress = std::chrono::steady_clock::now();
    } else {
      take_turn(candidates);
      last_progress = std::chrono::steady_clock::now();
    }
  }
}

void wait_for_context(Context& context) { wait_until_done(everything_submitted(context)); }

bool poll(const OpRef& op, unsigned& polls) {
  if (is_done(op)) return true;
  if (++polls <= kPatience) return false;
  std::vector<OpRef> candidates = runnable_towards(op);
  if (candidates.empty()) candidates = runnable_anywhere();
  if (!candidates.empty()) take_turn(candidates);
  return is_done(op);
}

void run_everything() {
  for (auto candidates = runnable_anywhere(); !candidates.empty(); candidates = runnable_anywhere())
    take_turn(candidates);
}

void run_towards(const OpRef& op) {
  for (auto candidates = runnable_towards(op); !candidates.empty(); candidates = runnable_towards(op))
    take_turn(candidates);
}

void abandon(Context& context) {
  const OpRef all = everything_submitted(context);
  while (!is_done(all)) {
    run_towards(all);
    std::vector<OpRef> stuck;
    for_each_stream(context, [&](Stream& stream) {
      if (!stream.queue.empty() && !stream.queue.front()->running) stuck.push_back(stream.queue.front());
    });
    for (const OpRef& op : stuck) {
      op->waits.clear();
      finish(*op);
    }
    if (stuck.empty() && !is_done(all)) clock().changed.wait_for(big_lock(), std::chrono::milliseconds(1));
  }
}

uint64_t now() { return clock().now; }
uint64_t pending() { return clock().pending; }

}  // namespace gpupool::sim
