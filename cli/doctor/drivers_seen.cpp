// See drivers_seen.h.
#include "cli/doctor/drivers_seen.h"

#include <filesystem>

#include "cli/folder.h"
#include "cli/libraries.h"
#include "cli/processes.h"

namespace gpupool::cli {
namespace {

constexpr double kBetweenLooks = 0.1;

}  // namespace

void DriversSeen::look(double seconds) {
  if (seconds < next_look_) return;
  next_look_ = seconds + kBetweenLooks;
  for (const int process : processes_with(mark_)) {
    const std::string folder = "/proc/" + std::to_string(process);
    const std::string maps = read_small_file(folder + "/maps");
    if (maps.find("/libcuda.so") == std::string::npos) continue;
    std::error_code error;
    const std::string executable = std::filesystem::read_symlink(folder + "/exe", error).string();
    processes_[process] = {executable, maps.find("/" + std::string{kFrontName}) != std::string::npos};
  }
}

}  // namespace gpupool::cli
