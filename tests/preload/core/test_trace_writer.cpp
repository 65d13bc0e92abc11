// The recorder's writer by itself: a ring that drops and counts when it is full, many threads at once, a file that
// reads back as what was pushed.
#include <algorithm>
#include <set>
#include <thread>
#include <vector>

#include "cli/trace/read.h"
#include "preload/trace_writer.h"
#include "tests/catch.h"
#include "tests/preload/core/run.h"

using namespace gpupool;

namespace {

TraceWriter::PoolText no_pools() {
  return [](unsigned&) { return std::string(); };
}

}  // namespace

TEST_CASE("a full ring drops and counts; what it holds comes out in order") {
  TraceRing ring;
  for (std::uint64_t i = 0; i < TraceRing::kPlaces + 10; ++i) ring.push({.address = i});
  CHECK(ring.dropped() == 10);
  TraceRecord record;
  for (std::uint64_t i = 0; i < TraceRing::kPlaces; ++i) {
    REQUIRE(ring.pop(record));
    REQUIRE(record.address == i);
  }
  CHECK_FALSE(ring.pop(record));
  ring.push({.address = 77});
  REQUIRE(ring.pop(record));
  CHECK(record.address == 77);
}

TEST_CASE("threads: every record is written once, or counted as dropped, each thread's in its order") {
  const tests::Folder folder;
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kRecords = 50'000;
  TraceWriter writer(folder / "t", "pool 0 device 0\n", no_pools());
  std::vector<std::thread> threads;
  for (std::uint64_t number = 0; number < kThreads; ++number) {
    threads.emplace_back([&writer, number] {
      for (std::uint64_t i = 0; i < kRecords; ++i) {
        TraceRecord record{.address = (number * kRecords + i) * 512, .bytes = i + 1};
        record.thread = static_cast<std::uint16_t>(number);
        record.pool = 0;
        writer.push(record);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  writer.finish();
  CHECK(writer.written() + writer.dropped() == kThreads * kRecords);
  const cli::Trace trace = cli::read_trace(folder / "t");
  CHECK(trace.requests == writer.written());
  CHECK(trace.dropped == writer.dropped());
  std::vector<std::uint64_t> last(trace.threads);
  for (const cli::Event& event : trace.events) {
    REQUIRE(event.bytes > last[event.seen.thread]);
    last[event.seen.thread] = event.bytes;
  }
}

TEST_CASE("times are those of the clock, whatever counts the ticks") {
  const tests::Folder folder;
  const std::uint64_t begin = monotonic_clock_ns();
  TraceWriter writer(folder / "t", "pool 0 device 0\n", no_pools());
  for (std::uint64_t i = 0; i < 30; ++i) {
    TraceRecord record{.address = i * 512, .bytes = 1};
    record.pool = 0;
    writer.push(record);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // over several blocks
  }
  writer.finish();
  const std::uint64_t whole = monotonic_clock_ns() - begin;
  const cli::Trace trace = cli::read_trace(folder / "t");
  REQUIRE(trace.events.size() == 30);
  CHECK(trace.events.back().seen.time_ns <= whole);
  CHECK(trace.events.back().seen.time_ns >= 290'000'000);
  for (std::size_t i = 1; i < trace.events.size(); ++i)
    CHECK(trace.events[i].seen.time_ns >= trace.events[i - 1].seen.time_ns + 10'000'000 - 1'000'000);
}
