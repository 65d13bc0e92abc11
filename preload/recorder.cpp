// See recorder.h.
#include "preload/recorder.h"

#include <time.h>

#include <algorithm>
#include <new>
#include <system_error>

#include "config/text.h"
#include "device/context.h"
#include "preload/hooks.h"
#include "preload/log.h"
#include "preload/process.h"
#include "preload/trace_writer.h"

namespace gpupool {
namespace {

constexpr HookRow kNoCall = kHookRows;

std::uint16_t this_thread() {
  static std::atomic<std::uint16_t> threads{0};
  static __thread std::uint16_t number = 0;
  if (number == 0) number = static_cast<std::uint16_t>(threads.fetch_add(1, std::memory_order_relaxed) + 1);
  return number;
}

std::int64_t unix_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// The pool number of what the driver serves; its device is the current one.
std::uint16_t driver_pool() {
  CUdevice device = 0;
  if (setup().api.cuCtxGetDevice(&device) != CUDA_SUCCESS || device < 0 || device > 0xfe) return kTraceNoPool;
  return static_cast<std::uint16_t>(kTraceDevicePools | device);
}

// A line of text of the file; whatever would break it is shown as an escape.
void add_line(std::string& text, const char* type, unsigned number, const char* key, const std::string& value) {
  text += std::string(type) + " " + std::to_string(number) + " " + key + " " + escaped(value, value.size()) + "\n";
}

std::string process_text() {
  const pid_t pid = process().pid;
  std::string text;
  add_line(text, "process", 0, "pid", std::to_string(pid));
  add_line(text, "process", 0, "executable", setup().executable);
  add_line(text, "process", 0, "host", expand_path("%h", pid));
  add_line(text, "process", 0, "rank", expand_path("%r", pid));
  add_line(text, "process", 0, "strategy", to_text(setup().options.pool.strategy));
  add_line(text, "process", 0, "began_unix_ns", std::to_string(unix_ns()));
  for (unsigned row = 0; row < kHookCount; ++row) {
    if (kHooks[row].kind == HookKind::POOL || kHooks[row].kind == HookKind::WATCH)
      add_line(text, "call", row, "name", kHooks[row].symbol);
  }
  return text;
}

std::string pool_text(const Registry& registry, unsigned& from) {
  std::string text;
  unsigned number = 0;
  registry.each([&](const Home& home) {
    if (number++ < from) return;
    const unsigned pool = number - 1;
    add_line(text, "pool", pool, "device", std::to_string(home.device()));
    add_line(text, "pool", pool, "card", home.card());
    add_line(text, "pool", pool, "uuid", home.uuid());
    add_line(text, "pool", pool, "card_bytes", std::to_string(home.resolved().total));
    add_line(text, "pool", pool, "limit", std::to_string(home.resolved().max));
    add_line(text, "pool", pool, "handle", std::to_string(home.resolved().handle));
  });
  from = number;
  return text;
}

}  // namespace

enum class Recorder::Mark : std::uint8_t {
#define MARK(name, sentence) name,
#include "pool/trace_marks.def"
#undef MARK
};

TraceWriter* Recorder::start() {
  const std::lock_guard lock(mutex_);
  TraceWriter* writer = writer_.load(std::memory_order_acquire);
  if (writer || !on()) return writer;
  try {
    writer = new TraceWriter(file_path(setup().options.trace.path, process().pid, ".gpt"), process_text(),
                             [this](unsigned& from) { return pool_text(registry_, from); });
    writer_.store(writer, std::memory_order_release);
  } catch (const std::bad_alloc&) {
    on_.store(false, std::memory_order_relaxed);
    log::warn("no trace: not enough memory on this host");
  } catch (const std::system_error& error) {
    on_.store(false, std::memory_order_relaxed);
    log::warn(std::string("no trace: ") + error.what());
  }
  return writer;
}

void Recorder::push(TraceRecord record) {
  TraceWriter* writer = writer_.load(std::memory_order_acquire);
  if (!writer && !(writer = start())) return;
  record.thread = this_thread();
  writer->push(record);
}

void Recorder::put_served(HookRow row, const Home& home, const Request& request, std::uint64_t address) {
  const unsigned pool = registry_.number_of(home);
  TraceRecord record{.address = address, .bytes = request.bytes};
  record.pool = static_cast<std::uint16_t>(pool);
  record.call = static_cast<std::uint16_t>(row);
  if (request.line != kContextLine) record.stream = request.line;
  note_changes(row, home, pool);
  const std::uint64_t fences = home.tape()->stats().fences.get();
  if (last_seen_[pool].fences.load(std::memory_order_relaxed) != fences) {
    last_seen_[pool].fences.store(fences, std::memory_order_relaxed);
    record.flags = kTraceFenced;
  }
  push(record);
}

void Recorder::put_passed(HookRow row, std::uint64_t bytes, std::uint64_t address, std::uint64_t stream) {
  TraceRecord record{.address = address, .bytes = bytes, .stream = stream};
  record.pool = driver_pool();
  record.call = static_cast<std::uint16_t>(row);
  record.flags = kTraceByDriver;
  push(record);
}

void Recorder::put_freeing(HookRow row, const Home& home, std::uint64_t address, Line line) {
  TraceRecord record{.address = address};
  if (line != kContextLine) record.stream = line;
  record.pool = static_cast<std::uint16_t>(registry_.number_of(home));
  record.call = static_cast<std::uint16_t>(row);
  record.kind = TraceKind::kFree;
  push(record);
}

void Recorder::put_passing_free(HookRow row, std::uint64_t address) {
  TraceRecord record{.address = address};
  record.call = static_cast<std::uint16_t>(row);
  record.kind = TraceKind::kFree;
  record.flags = kTraceByDriver;
  push(record);
}

void Recorder::put_watched(HookRow row, std::uint64_t bytes, CUresult result) {
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return push_mark(Mark::out_of_memory, row, driver_pool(), bytes, 0, 0);
  if (result != CUDA_SUCCESS || bytes == 0 || kHooks[row].kind != HookKind::WATCH) return;
  push_mark(Mark::passed, row, driver_pool(), bytes, 1, 0);
}

void Recorder::put_pool_full(HookRow row, const Home& home, const Request& request, Verdict verdict) {
  const unsigned pool = registry_.number_of(home);
  note_changes(row, home, pool);
  push_mark(Mark::pool_full, row, pool, request.bytes, static_cast<std::uint64_t>(verdict), reserved_of(home));
}

void Recorder::put_changed(const Home& home) {
  if (home.tape()) note_changes(kNoCall, home, registry_.number_of(home));
}

void Recorder::put_retired(const Home& home) {
  if (home.tape()) push_mark(Mark::retired, kNoCall, registry_.number_of(home), 0, 0, reserved_of(home));
}

void Recorder::push_mark(Mark mark, HookRow row, unsigned pool, std::uint64_t bytes, std::uint64_t count,
                         std::uint64_t reserved) {
  TraceRecord record{.address = count, .bytes = bytes, .stream = reserved};
  record.pool = static_cast<std::uint16_t>(pool);
  record.call = static_cast<std::uint16_t>(row);
  record.kind = static_cast<TraceKind>(static_cast<unsigned>(TraceKind::kMark) + static_cast<unsigned>(mark));
  push(record);
}

std::uint64_t Recorder::reserved_of(const Home& home) const { return home.tape()->stats().reserved.current(); }

// Counters move under the tape's lock, in the calls of several threads and of the prefill: whoever looks first tells.
void Recorder::note_changes(HookRow row, const Home& home, unsigned pool) {
  const Stats& stats = home.tape()->stats();
  LastSeen& last = last_seen_[pool];
  const std::uint64_t peak = stats.reserved.peak();  // first: what is held now is less only after a trim
  const std::uint64_t reserved = stats.reserved.current();
  const std::uint64_t rare = reserved + stats.growth_steps.get() + stats.migrations.get() + stats.trims.get();
  if (last.rare.load(std::memory_order_relaxed) == rare) [[likely]]
    return;
  last.rare.store(rare, std::memory_order_relaxed);
  const auto added = [](std::atomic<std::uint64_t>& last_value, std::uint64_t value) {
    const std::uint64_t before = last_value.exchange(value, std::memory_order_relaxed);
    return value > before ? value - before : 0;
  };
  // What a prefill took after the last look and a trim gave back before this one.
  if (added(last.peak, peak) != 0 && peak > reserved) push_mark(Mark::growth, row, pool, 0, 0, peak);
  const std::uint64_t risen = added(last.reserved, reserved);
  const std::uint64_t grown = added(last.growth_bytes, stats.growth_bytes.get());
  const std::uint64_t moved = added(last.migrated_bytes, stats.migrated_bytes.get());
  const std::uint64_t trimmed = added(last.trimmed_bytes, stats.trimmed_bytes.get());
  const std::uint64_t steps = added(last.growth_steps, stats.growth_steps.get());
  const std::uint64_t migrations = added(last.migrations, stats.migrations.get());
  const std::uint64_t trims = added(last.trims, stats.trims.get());
  if (trims != 0) push_mark(Mark::trim, row, pool, trimmed, trims, reserved);
  if (migrations != 0) push_mark(Mark::migration, row, pool, moved, migrations, reserved);
  // The pre-reservation is no step.
  if (steps != 0 || risen != 0) push_mark(Mark::growth, row, pool, std::max(grown, risen), steps, reserved);
}

void Recorder::finish() {
  on_.store(false, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  TraceWriter* writer = writer_.load(std::memory_order_acquire);
  if (!writer) return;
  writer->finish();
  if (writer->dropped() != 0) {
    log::warn("trace " + escaped(writer->path(), writer->path().size()) + ": " + std::to_string(writer->dropped()) +
              " records were lost, " + std::to_string(writer->written()) + " written");
  }
}

void Recorder::disown() {
  if (TraceWriter* writer = writer_.load(std::memory_order_acquire)) writer->disown();
}

}  // namespace gpupool
