// See caches.h.
#include "cli/size/caches.h"

#include <algorithm>
#include <filesystem>

#include "cli/folder.h"

namespace gpupool::cli {
namespace {

namespace fs = std::filesystem;
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
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const std::string folder = entry->path().string();
    if (folder.find_first_of("123456789") == std::string::npos) continue;
    if (read_small_file(folder + "/environ").find(mark_) == std::string::npos) continue;
    const std::string maps = read_small_file(folder + "/maps");
    std::erase_if(open_, [&](const Switch& one) {
      if (maps.find("/" + std::string{one.library}) == std::string::npos) return false;
      if (const std::string name{one.framework}; std::ranges::find(seen_, name) == seen_.end()) seen_.push_back(name);
      return true;
    });
  }
}

}  // namespace gpupool::cli
