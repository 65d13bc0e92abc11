// See process.h.
#include "preload/process.h"

#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <new>

#include "config/text.h"
#include "preload/log.h"

namespace gpupool {

const Setup* detail::the_setup = nullptr;
std::atomic<Process*> detail::the_process{nullptr};

namespace {

std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::uint64_t(now.tv_sec) * 1'000'000'000 + std::uint64_t(now.tv_nsec);
}

// The child has a page of its own, if it uses device memory, and never touches the parent's. If there is no memory it
// keeps the parent's tables: it cannot use CUDA in a process that had begun to anyway.
void in_child() {
  log::forget_sink();
  process().trace.disown();
  process().exports.abandon();
  process().imports.abandon();
  epoch.fetch_add(1, std::memory_order_acq_rel);
  try {
    detail::the_process.store(new Process(setup()), std::memory_order_release);
  } catch (...) {
    return;
  }
}

// What launchers call the rank of a process, the job's before the node's.
const char* rank() {
  for (const char* name :
       {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "JOB_COMPLETION_INDEX", "LOCAL_RANK"}) {
    const char* value = std::getenv(name);
    if (value && *value) return value;
  }
  return "0";
}

std::string host() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

// A rank or a host becomes part of a file's name, never of its folder.
std::string without_slashes(std::string text) {
  for (char& c : text) {
    if (c == '/') c = '_';
  }
  return text;
}

}  // namespace

Process::Process(const Setup& setup)
    : pid(getpid()),
      page(monotonic_ns()),
      neighbours(page),
      registry(setup.api, captures),
      direct(page.page().passed),
      calls(page.page()),
      curve(page.page().curve, page.page().seen_ms, static_cast<std::uint64_t>(setup.options.stats.interval.count())),
      trace(setup.options.trace.path, registry) {}

void begin_process(Setup& fresh) {
  detail::the_setup = &fresh;
  detail::the_process.store(new Process(fresh), std::memory_order_release);
  pthread_atfork(nullptr, nullptr, in_child);
}

std::string expand_path(const std::string& pattern, pid_t pid) {
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      path += pattern[i];
      continue;
    }
    const char what = pattern[++i];
    if (what == 'p')
      path += std::to_string(pid);
    else if (what == 'h')
      path += without_slashes(host());
    else if (what == 'r')
      path += without_slashes(rank());
    else if (what == '%')
      path += '%';
    else
      (path += '%') += what;
  }
  return path;
}

std::string file_path(const std::string& pattern, pid_t pid, const char* suffix) {
  const std::string path = expand_path(pattern, pid);
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return path;
  const std::string file = path + (path.ends_with('/') ? "gpupool-" : "/gpupool-") + std::to_string(pid) + suffix;
  log::warn(escaped(path, path.size()) + " is a folder; what was to go there goes to " + escaped(file, file.size()));
  return file;
}

}  // namespace gpupool
