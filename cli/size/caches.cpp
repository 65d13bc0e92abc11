// See caches.h.
#include "cli/size/caches.h"

#include <algorithm>

#include "cli/folder.h"
#include "cli/processes.h"

namespace gpupool::cli {
namespace {

constexpr double kBetweenLooks = 0.5;

}  // namespace

CacheWatch::CacheWatch(const Environment& environment, std::string mark) : mark_(std::move(mark)) {
  for (const Switch& one : unify_switches()) {
    if (!one.library.empty() && is_open(environment, one)) open_.push_back(one);
  }
}

void CacheWatch::look(double seconds) {
  if (open_.empty() || seconds < next_look_) return;
  next_look_ = seconds + kBetweenLooks;
  for (const int process : processes_with(mark_)) {
    const std::string maps = read_small_file("/proc/" + std::to_string(process) + "/maps");
    std::erase_if(open_, [&](const Switch& one) {
      if (maps.find("/" + std::string{one.library}) == std::string::npos) return false;
      if (const std::string name{one.framework}; std::ranges::find(seen_, name) == seen_.end()) seen_.push_back(name);
      return true;
    });
  }
}

}  // namespace gpupool::cli
