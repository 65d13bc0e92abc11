// See report.h.
#include "preload/real.h"

#include "preload/report.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "config/text.h"
#include "live/report.h"
#include "live/taken.h"
#include "live/write_all.h"
#include "preload/log.h"
#include "preload/process.h"
#include "preload/quiet_signals.h"
#include "preload/red_zones.h"
#include "preload/serve.h"

namespace gpupool {
namespace {

void say(const std::string& text) {
  if (log::has_stderr()) write_all(STDERR_FILENO, text);
}

// `inside`: the process ends in the middle of one of our own calls, whose locks nobody will give up.
void report_process(Process& ending, bool inside, const Guard& guard) {
  if (inside)
    ending.page.note_time();
  else
    sample(guard);
  std::vector<const PoolSlot*> pools;
  ending.registry.each([&](const Home& home) {
    if (home.tape()) pools.push_back(&home.shown());
  });
  if (!used_device_memory(ending.page.page(), pools)) return;
  const StatsOptions& stats = setup().options.stats;
  const Report report = collect(ending.page.page(), pools, Ending::kExit);
  if (stats.summary) say(report_text(report));
  if (stats.path.empty()) return;
  const std::string path = file_path(stats.path, ending.pid, ".json");
  const std::string name = write_report(path, report_json(report));
  const int error = errno;
  if (name.empty())
    say("gpupool: cannot write the report " + escaped(path, path.size()) + ": " + std::strerror(error) + "\n");
  else if (name != path)
    log::warn(taken_text(path, "report", name));
}

}  // namespace

void finish_process() {
  if (!has_process() || process().pid != getpid()) return;
  const QuietSignals quiet;
  const bool inside = Guard::inside();
  const Guard guard;
  try {
    if (!inside) {
      process().exports.stop();
      process().neighbours.stop();
      process().registry.each([](Home& home) {
        home.stop_prefill();
        process().trace.changed(home);
        if (RedZones* zones = home.red_zones()) zones->finish();
      });
    }
    process().trace.finish();
    report_process(process(), inside, guard);
  } catch (...) {
    // no host memory for a report
  }
  process().page.remove();
}

}  // namespace gpupool
