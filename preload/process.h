// Everything the core keeps for this process, in one place. Setup is what the front and the configuration said: made
// once, constant, shared with forked children. Process is what has happened since: a forked child leaves the parent's
// behind, untouched, and starts with a fresh one, so no lock or thread of the parent matters to it. Neither is ever
// deleted.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "preload/real.h"

#include "config/load.h"
#include "device/captures.h"
#include "device/driver_api.h"
#include "preload/calls.h"
#include "preload/curve.h"
#include "preload/ipc_export.h"
#include "preload/ipc_import.h"
#include "preload/lookup.h"
#include "preload/memory_pools.h"
#include "preload/neighbours.h"
#include "preload/page.h"
#include "preload/passthrough.h"
#include "preload/recorder.h"
#include "preload/registry.h"

namespace gpupool {

struct Setup {
  Options options;
  DriverApi api;
  ProcResolver resolver;
  void* hooks[kHookRows] = {};
  std::string executable;
};

struct Process {
  explicit Process(const Setup& setup);

  const pid_t pid;
  OwnPage page;
  Neighbours neighbours;
  Captures captures;
  Registry registry;
  MemoryPools pools;
  PassThrough direct;
  Exports exports;
  Imports imports;
  Calls calls;
  Curve curve;
  Recorder trace;
};

namespace detail {
[[gnu::visibility("hidden")]] extern const Setup* the_setup;
[[gnu::visibility("hidden")]] extern std::atomic<Process*> the_process;
}  // namespace detail

/// False before core_start has succeeded, and where the process gets no pool.
inline bool has_process() { return detail::the_process.load(std::memory_order_acquire) != nullptr; }

/// Valid with has_process().
inline const Setup& setup() { return *detail::the_setup; }
inline Process& process() { return *detail::the_process.load(std::memory_order_acquire); }

/// For core.cpp: keeps `fresh` for the life of the process and arranges for forks.
void begin_process(Setup& fresh);

/// The name of a report, trace or log with %p (process), %h (host), %r (rank), %% filled in.
std::string expand_path(const std::string& pattern, pid_t pid);
/// The same; where that is a folder, which the log says, gpupool-%p and `suffix` in it.
std::string file_path(const std::string& pattern, pid_t pid, const char* suffix);

}  // namespace gpupool
