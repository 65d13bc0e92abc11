// See finding.h: a preload in a child, and a run of the program itself, which alone proves that its allocations arrive.
#include <signal.h>
#include <unistd.h>

#include <set>
#include <string_view>

#include "cli/console.h"
#include "cli/counted_run.h"
#include "cli/doctor/drivers_seen.h"
#include "cli/doctor/finding.h"
#include "cli/folder.h"
#include "cli/libraries.h"
#include "cli/size/caches.h"
#include "config/load.h"
#include "config/processes.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

constexpr double kMostSeconds = 60;
constexpr double kPatience = 5;

struct Arrived {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  std::set<std::uint64_t> processes;  // that used device memory, by number
};

Arrived arrived_from(const std::vector<ProcessReport>& reports) {
  Arrived arrived;
  for (const ProcessReport& report : reports) {
    for (const PastReport& past : report.past) arrived.calls += past.calls, arrived.bytes += past.bytes;
    if (!report.past.empty()) arrived.processes.insert(report.pid);
  }
  return arrived;
}

// What pool.reuse=sync is for, docs/compatibility.md.
void hint_at_sync(Findings& findings, const std::vector<ProcessReport>& reports) {
  for (const ProcessReport& report : reports) {
    const auto calls = [&](std::string_view name) {
      std::uint64_t sum = 0;
      for (const PastReport& past : report.past) sum += past.api.starts_with(name) ? past.calls : 0;
      return sum;
    };
    if (calls("cuMemAlloc_v2") == 0 || calls("cuMemHostAlloc") + calls("cuMemAllocHost") == 0) continue;
    findings.push_back({Level::note, "run",
                        "it uses cudaMalloc beside pinned host memory: with a pool cudaFree does not wait for the card",
                        "if results there are wrong or change, pool.reuse=sync"});
    return;
  }
}

// The run has counted everything; what the user has chosen may leave it to the driver.
void tell_of_settings(Findings& findings, const std::vector<ProcessReport>& reports) {
  const Options options = load(environ).options;
  if (options.pool.strategy == Strategy::off) {
    findings.push_back({Level::warning, "run", "pool.strategy=off: it was counted here, and will get no pool",
                        "choose another pool.strategy"});
    return;
  }
  std::set<std::string> excluded;
  for (const ProcessReport& report : reports) {
    if (!report.past.empty() && !gets_pool(options.processes, report.executable)) excluded.insert(report.executable);
  }
  for (const std::string& executable : excluded) {
    findings.push_back({Level::warning, "run",
                        executable + " is excluded by processes.include or processes.exclude: it was counted here, "
                                     "and will get no pool",
                        "change these options"});
  }
}

void tell(Findings& findings, int number, const DriversSeen::Process& process, const Arrived& arrived) {
  if (arrived.processes.contains(static_cast<std::uint64_t>(number))) return;
  const std::string who = "process " + std::to_string(number) + ", " + process.executable + ", ";
  if (!process.has_front) {
    findings.push_back({Level::warning, "run", who + "has the driver and not the preload",
                        "look for what clears LD_PRELOAD before it starts"});
  } else if (arrived.calls == 0) {
    findings.push_back({Level::warning, "run", who + "has the driver, and none of its calls came through the preload",
                        "if it used device memory, a library of it is opened with RTLD_DEEPBIND or dlmopen"});
  }
}

}  // namespace

void check_child(Findings& findings, const std::string& wanted) {
  std::string front;
  try {
    front = find_front(wanted);
  } catch (const Problem&) {
    return;  // check_libraries has said so
  }
  const Folder folder;
  const std::string maps = (folder.path() / "maps").string();
  Environment environment = own_environment();
  environment["LD_PRELOAD"] = preload_list(front, value_of(environment, "LD_PRELOAD"));
  run_and_wait({"/bin/sh", "-c", "cat /proc/self/maps >\"$1\" 2>/dev/null", "sh", maps}, environment, "",
               [](double) { return 0; });
  const std::string text = read_small_file(maps);
  if (text.find(kFrontName) != std::string::npos) {
    findings.push_back({Level::ok, "child", "a child process gets the preload", ""});
  } else {
    findings.push_back(
        {Level::broken, "child", "a child process does not get " + front,
         "look for what clears LD_PRELOAD, and whether programs here are of another C library or word size"});
  }
}

void check_run(Findings& findings, const std::vector<std::string>& program, const std::string& wanted) {
  Environment environment = own_environment();
  environment["LD_PRELOAD"] = preload_list(find_front(wanted), value_of(environment, "LD_PRELOAD"));
  // What would keep its processes from being counted is told below.
  set(environment, {"pool.strategy", "passthrough"});
  set(environment, {"processes.include", "*"});
  set(environment, {"processes.exclude", ""});
  const CountedRun run(environment);
  std::vector<std::string> quiet{"/bin/sh", "-c", "exec \"$@\" >/dev/null 2>&1 </dev/null", "sh"};
  quiet.insert(quiet.end(), program.begin(), program.end());
  unsigned asked = 0;
  CacheWatch caches(environment, run.mark());
  DriversSeen drivers(run.mark());
  const int ended = run_and_wait(quiet, environment, run.mark(), [&](double seconds) {
    caches.look(seconds);
    drivers.look(seconds);
    if (seconds < kMostSeconds + asked * kPatience) return 0;
    return asked++ == 0 ? SIGINT : SIGKILL;
  });
  const std::string how = asked != 0 ? "stopped after " + std::to_string(int(kMostSeconds)) + " s"
                                     : "ended with status " + std::to_string(ended);
  const std::vector<ProcessReport> reports = run.reports();
  const Arrived arrived = arrived_from(reports);
  if (arrived.calls != 0) {
    findings.push_back({Level::ok, "run",
                        "its allocations arrive: " + std::to_string(arrived.calls) + " calls for " +
                            readable(arrived.bytes) + " from " + std::to_string(arrived.processes.size()) +
                            (arrived.processes.size() == 1 ? " process" : " processes") + " (" + how + ")",
                        ""});
  } else {
    findings.push_back(
        {Level::warning, "run", "no allocation of it arrived (" + how + ")",
         "does it use device memory in that time? If it does: static executables, RTLD_DEEPBIND, and what "
         "clears LD_PRELOAD keep the preload out"});
  }
  tell_of_settings(findings, reports);
  for (const auto& [number, process] : drivers.processes()) tell(findings, number, process, arrived);
  hint_at_sync(findings, reports);
  for (const std::string& framework : caches.frameworks()) {
    findings.push_back({Level::note, "run",
                        "it has loaded " + framework + ", which keeps a cache of its own above the pool",
                        "gpupool run --unify"});
  }
}

}  // namespace gpupool::cli
