// See finding.h: the checks of the machine and the shell.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "cli/console.h"
#include "cli/doctor/finding.h"
#include "cli/doctor/probe.h"
#include "cli/libraries.h"
#include "config/load.h"
#include "config/table.h"
#include "config/text.h"
#include "live/page.h"

namespace gpupool::cli {
namespace {

namespace fs = std::filesystem;

// cuDriverGetVersion counts 12.5 as 12050; before it, events of whole contexts are missing and a free waits on the
// host.
constexpr int kContextEvents = 12050;
constexpr int kNoDevice = 100;

// "0 13000": the answer of cuInit, and the version.
std::string look_at_driver(void* library) {
  using Init = int (*)(unsigned);
  using Version = int (*)(int*);
  const auto init = reinterpret_cast<Init>(dlsym(library, "cuInit"));
  const auto version = reinterpret_cast<Version>(dlsym(library, "cuDriverGetVersion"));
  int number = 0;
  if (init == nullptr || version == nullptr || version(&number) != 0) return "";
  return std::to_string(init(0)) + " " + std::to_string(number);
}

bool is_loaded_here(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with("/" + name)) return true;
  }
  return false;
}

}  // namespace

std::string_view level_text(Level level) {
  switch (level) {
    case Level::ok:
      return "ok";
    case Level::note:
      return "note";
    case Level::warning:
      return "warning";
    case Level::broken:
      return "broken";
  }
  return "";
}

bool look(Findings& findings, const char* what, const std::function<void()>& part) {
  try {
    part();
    return true;
  } catch (const Problem& problem) {
    if (problem.status() != Exit::output) throw;
    findings.push_back({Level::warning, what, "not looked at: " + std::string{problem.what()},
                        "set TMPDIR to a folder that this user may write"});
    return false;
  }
}

void check_driver(Findings& findings) {
  const Probe probe = probe_library("libcuda.so.1", look_at_driver);
  if (!probe.loaded) {
    findings.push_back(
        {Level::broken, "driver", probe.says, "install NVIDIA's driver; in a container, let its runtime mount it"});
    return;
  }
  const std::size_t blank = probe.says.find(' ');
  if (blank == std::string::npos) {
    findings.push_back({Level::broken, "driver", "libcuda.so.1 has no cuInit or cuDriverGetVersion",
                        "it is no CUDA driver; look at LD_LIBRARY_PATH"});
    return;
  }
  const int init = std::stoi(probe.says.substr(0, blank));
  const int number = std::stoi(probe.says.substr(blank + 1));
  const std::string version = std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
  if (init != 0) {
    const std::string says =
        "CUDA " + version + (init == kNoDevice ? ", and no device" : ", and cuInit answers " + std::to_string(init));
    findings.push_back(
        {Level::broken, "driver", says,
         "nvidia-smi shows what the driver sees; look at CUDA_VISIBLE_DEVICES and the container's devices"});
  } else if (number < kContextEvents) {
    findings.push_back({Level::warning, "driver",
                        "CUDA " + version + ": a plain free waits on the host, as it does without gpupool",
                        "a driver for CUDA 12.5 or newer lets the device wait instead"});
  } else {
    findings.push_back({Level::ok, "driver", "CUDA " + version, ""});
  }
}

void check_libraries(Findings& findings, const std::string& wanted) {
  std::string front;
  try {
    front = find_front(wanted);
  } catch (const Problem& problem) {
    findings.push_back({Level::broken, "front", problem.what(), "build or install it, or name it with --library"});
    return;
  }
  const std::string core = (fs::path{front}.parent_path() / kCoreName).string();
  for (const auto& [what, path] : {std::pair{"front", front}, std::pair{"core", core}}) {
    std::error_code error;
    const Probe probe = fs::exists(path, error) ? probe_library(path, nullptr) : Probe{false, path + " is not there"};
    if (probe.loaded) {
      findings.push_back({Level::ok, what, path, ""});
    } else {
      findings.push_back({Level::broken, what, probe.says,
                          "front and core of one build belong beside each other, on a C library that is new enough"});
    }
  }
}

void check_preload(Findings& findings, const Environment& environment) {
  const std::string list = value_of(environment, "LD_PRELOAD");
  std::error_code error;
  bool named = false;
  for (const std::string& entry : preload_entries(list)) {
    named = named || fs::path{entry}.filename() == kFrontName;
    if (entry.find('/') != std::string::npos && !fs::exists(entry, error)) {
      findings.push_back({Level::warning, "preload", "LD_PRELOAD names " + entry + ", which is not there",
                          "take it out of LD_PRELOAD"});
    }
  }
  if (const std::string off = value_of(environment, "GPUPOOL_DISABLE"); !off.empty() && off != "0") {
    findings.push_back(
        {Level::broken, "preload", "GPUPOOL_DISABLE=" + off + " switches gpupool off", "unset GPUPOOL_DISABLE"});
  }
  if (!named) {
    findings.push_back({Level::ok, "preload", "not set in this shell; gpupool run sets it for its program", ""});
  } else if (is_loaded_here(kFrontName)) {
    findings.push_back({Level::ok, "preload", "LD_PRELOAD is in effect", ""});
  } else {
    findings.push_back({Level::broken, "preload",
                        "LD_PRELOAD names " + std::string{kFrontName} + ", and the loader has not loaded it",
                        "use its absolute path, without blanks or colons"});
  }
}

void check_configuration(Findings& findings) {
  const Loaded loaded = load(environ);
  for (const Diagnostic& diagnostic : loaded.diagnostics) {
    findings.push_back({Level::warning, "configuration", diagnostic.message(), "gpupool config shows what holds"});
  }
  std::string chosen;
  for (std::size_t i = 0; i < loaded.sources.size(); ++i) {
    if (loaded.sources[i].kind == SourceKind::default_value) continue;
    const OptionRow& row = option_rows()[i];
    chosen += (chosen.empty() ? "" : ", ") + std::string{row.key} + "=" + row.get(loaded.options) + " (" +
              to_text(loaded.sources[i]) + ")";
  }
  if (loaded.options.pool.strategy == Strategy::off) {
    findings.push_back({Level::warning, "configuration", "pool.strategy=off: no program gets a pool, nor is it counted",
                        "choose another pool.strategy"});
  }
  if (!chosen.empty()) findings.push_back({Level::note, "configuration", "set: " + chosen, ""});
  if (!loaded.diagnostics.empty()) return;
  findings.push_back(
      {Level::ok, "configuration", loaded.file.empty() ? "valid; no file" : "valid; " + loaded.file, ""});
}

void check_shared_memory(Findings& findings) {
  const std::string name = "/gpupool-doctor-" + std::to_string(getpid());
  const int file = shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  if (file < 0) {
    findings.push_back({Level::warning, "shared memory", "/dev/shm: " + error_text(errno),
                        "mount a tmpfs on /dev/shm that this user may write"});
    return;
  }
  const int error = posix_fallocate(file, 0, page_file_bytes(1));
  close(file);
  shm_unlink(name.c_str());
  if (error != 0) {
    findings.push_back({Level::warning, "shared memory", "/dev/shm: " + error_text(error),
                        "make /dev/shm larger (docker run --shm-size)"});
  } else {
    findings.push_back({Level::ok, "shared memory", "/dev/shm can be written", ""});
  }
}

}  // namespace gpupool::cli
