// What trace.path records of whole programs, read back by the command's reader.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "cli/trace/read.h"
#include "tests/catch.h"
#include "tests/preload/core/run.h"

using namespace gpupool::tests;
using namespace gpupool::cli;

namespace {

struct Recorded {
  Outcome outcome;
  std::vector<Trace> traces;
};

Recorded record(const std::string& name, Environment settings = {}) {
  const Folder folder;
  settings["GPUPOOL_TRACE_PATH"] = folder / "t";
  settings["GPUPOOL_STATS_SUMMARY"] = "off";
  Recorded recorded{run_case(name, settings), {}};
  CAPTURE(recorded.outcome.err, recorded.outcome.out);
  REQUIRE(folder.files() == std::vector<std::string>{"t"});
  recorded.traces = read_traces(folder / "t");
  return recorded;
}

std::uint64_t frees(const Trace& trace) { return trace.events.size() - trace.requests; }

std::uint64_t marks(const Trace& trace, MarkKind kind) {
  return static_cast<std::uint64_t>(std::ranges::count(trace.marks, kind, &Mark::kind));
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("every request and free, with size, call, address, thread and time") {
  const Recorded recorded = record("plain", {{"RANK", "5"}});
  CHECK(recorded.outcome.status == 0);
  REQUIRE(recorded.traces.size() == 1);
  const Trace& trace = recorded.traces.front();
  CHECK(trace.format == "gpupool");
  CHECK(trace.timed);
  CHECK(trace.placed);
  CHECK(trace.requests == 7);
  CHECK(frees(trace) == 7);
  CHECK(trace.threads == 1);
  CHECK(trace.dropped == 0);
  CHECK(trace.notes.empty());
  std::vector<std::uint64_t> sizes;
  for (const Event& event : trace.events) {
    if (event.bytes != 0) sizes.push_back(event.bytes);
    CHECK(event.stream == kPlain);
    CHECK(event.seen.address % 512 == 0);
    CHECK(event.seen.address != 0);
    CHECK(event.seen.served == Served::by_pool);
    CHECK(trace.calls[event.seen.call] == (event.bytes ? "cuMemAlloc_v2" : "cuMemFree_v2"));
  }
  CHECK(sizes == std::vector<std::uint64_t>{1, 511, 512, 513, 4097, 1 << 20, 40 << 20});
  CHECK(trace.events.back().seen.time_ns > 0);
  CHECK(trace.events.back().seen.time_ns < 60'000'000'000);
  CHECK(trace.origin.rank == "5");
  CHECK(trace.origin.pid > 1);
  CHECK(contains(trace.origin.executable, "preload_core_program"));
  CHECK(trace.origin.strategy == "best_fit");
  CHECK(trace.origin.card_bytes == std::uint64_t{4} << 30);
  CHECK(trace.origin.limit > 0);
  CHECK_FALSE(trace.origin.uuid.empty());
  REQUIRE(marks(trace, MarkKind::growth) > 0);
  CHECK(trace.marks.front().reserved > 0);
}

TEST_CASE("what the driver serves is recorded as such, on every device") {
  const Recorded recorded = record("two_devices", {{"GPUPOOL_POOL_STRATEGY", "passthrough"}});
  REQUIRE(recorded.traces.size() == 2);
  for (const Trace& trace : recorded.traces) {
    CHECK(trace.requests > 0);
    for (const Event& event : trace.events) CHECK(event.seen.served == Served::by_driver);
  }
  CHECK(recorded.traces[1].origin.device == 1);
}

TEST_CASE("streams, fences and the driver's refusals") {
  const Recorded ordered = record("async");
  const Trace& trace = ordered.traces.front();
  CHECK(trace.streams >= 3);
  const bool async = std::ranges::any_of(
      trace.events, [&](const Event& event) { return trace.calls[event.seen.call] == "cuMemFreeAsync"; });
  CHECK(async);
  const Trace full = record("out_of_memory").traces.front();
  CHECK(marks(full, MarkKind::pool_full) > 1);  // there is some memory left outside the pool
  CHECK(marks(full, MarkKind::out_of_memory) == 1);
  CHECK(full.requests == frees(full) + 1);
  const bool both =
      std::ranges::any_of(full.events, [](const Event& event) { return event.seen.served == Served::by_driver; });
  CHECK(both);
  const Trace past = record("user_vmm").traces.front();
  CHECK(marks(past, MarkKind::passed) > 0);
  CHECK(marks(past, MarkKind::trim) > 0);
}

TEST_CASE("a pool that goes with its context takes its blocks along") {
  const Trace trace = record("reset").traces.front();
  CHECK(marks(trace, MarkKind::retired) == 1);
  CHECK(trace.requests == 2);
  CHECK(frees(trace) == 2);
}

TEST_CASE("threads: nothing is lost, and no address has two owners") {
  const Recorded recorded = record("many_pairs");
  const Trace& trace = recorded.traces.front();
  CHECK(trace.dropped == 0);
  CHECK(trace.notes.empty());  // neither frees that were missing nor unknown ones
  CHECK(trace.requests == 20'000);
  CHECK(frees(trace) == 20'000);
  CHECK(trace.threads == 4);
  std::map<std::uint64_t, unsigned> sizes;
  for (const Event& event : trace.events) {
    if (event.bytes != 0) ++sizes[event.bytes];
  }
  CHECK(sizes == std::map<std::uint64_t, unsigned>{{1000, 5000}, {2000, 5000}, {3000, 5000}, {4000, 5000}});
}

TEST_CASE("a training run, played as a CUDA program and recorded, is the run again") {
  constexpr std::size_t kEvents = 5000;
  const Folder folder;
  const Outcome outcome = run_program(
      {GPUPOOL_TEST_LOAD, GPUPOOL_TEST_TRACE, "--limit", std::to_string(kEvents), "--api", "async", "--streams", "3"},
      {{"GPUPOOL_TRACE_PATH", folder / "t"},
       {"GPUPOOL_SIM_MEMORY", "40GiB"},
       {"GPUPOOL_POOL_STRATEGY", "auto_growth"},
       {"GPUPOOL_STATS_SUMMARY", "off"}});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.status == 0);
  const Trace played = read_trace(GPUPOOL_TEST_TRACE);
  const Trace trace = read_trace(folder / "t");
  CHECK(trace.notes.empty());
  CHECK(trace.streams == 3);
  REQUIRE(trace.events.size() >= kEvents);  // what is left at the end is freed
  std::map<std::uint32_t, std::uint32_t> slots;
  for (std::size_t i = 0; i < kEvents; ++i) {
    CAPTURE(i);
    REQUIRE(trace.events[i].bytes == played.events[i].bytes);
    if (played.events[i].bytes != 0) slots[played.events[i].slot] = trace.events[i].slot;
    REQUIRE(trace.events[i].slot == slots.at(played.events[i].slot));
  }
}

TEST_CASE("a killed process leaves what was flushed") {
  const Folder folder;
  const pid_t child = start_program({GPUPOOL_TEST_PROGRAM, "pairs_for_ever"}, {{"GPUPOOL_TRACE_PATH", folder / "t"}},
                                    Preload::kFront, folder);
  // What has been written so far; nothing as long as that is no trace yet.
  const auto requests = [&]() -> std::uint64_t {
    try {
      return read_trace(folder / "t").requests;
    } catch (const std::exception&) {
      return 0;
    }
  };
  wait_while_running(child, [&] { return requests() >= 500; });
  const std::uint64_t flushed = requests();
  kill(child, SIGKILL);
  CHECK(wait_for(child) == 128 + SIGKILL);
  CHECK(requests() >= flushed);
}

TEST_CASE("a full disk: one warning, and the program goes on") {
  const Recorded recorded = record("disk_full", {{"GPUPOOL_POOL_STRATEGY", "auto_growth"}});
  CHECK(recorded.outcome.status == 0);
  CHECK(contains(recorded.outcome.err, "File too large"));
  CHECK(std::count(recorded.outcome.err.begin(), recorded.outcome.err.end(), '\n') == 2);
  CHECK(contains(recorded.outcome.err, "records were lost"));
}

TEST_CASE("no folder: one warning, and the program goes on") {
  const Outcome outcome =
      run_case("plain", {{"GPUPOOL_TRACE_PATH", "/nonexistent/t"}, {"GPUPOOL_STATS_SUMMARY", "off"}});
  CHECK(outcome.status == 0);
  CHECK(contains(outcome.err, "cannot write the trace: /nonexistent/t: No such file or directory"));
}

TEST_CASE("a trace is its owner's alone, and replaces nothing") {
  const Folder folder;
  REQUIRE(symlink("/nonexistent", (folder / "t.5").c_str()) == 0);
  for (int i = 0; i < 2; ++i) run_case("plain", {{"GPUPOOL_TRACE_PATH", folder / "t.%r"}, {"RANK", "5"}});
  CHECK(folder.files() == std::vector<std::string>{"t.5", "t.5.1", "t.5.2"});
  struct stat info {};
  REQUIRE(stat((folder / "t.5.1").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
}

TEST_CASE("children: those that use device memory have a file of their own, others none") {
  const Folder after;
  run_case("fork_after", {{"GPUPOOL_TRACE_PATH", after / "t"}});
  CHECK(after.files() == std::vector<std::string>{"t"});
  CHECK(read_trace(after / "t").requests > 0);
  const Folder among;
  CHECK(run_case("fork_among_threads", {{"GPUPOOL_TRACE_PATH", among / "t"}}).status == 0);
  const Folder nothing;
  CHECK(run_case("nothing", {{"GPUPOOL_TRACE_PATH", nothing / "t"}}).status == 0);
  CHECK(nothing.files().empty());
}
