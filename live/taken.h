// What a name stands for under which a new file was to be made. Reports and traces never replace what is there: beside
// a file they take another name, a device such as /dev/null takes what is written as it is, and into anything else, a
// pipe or a socket, nothing is written, for nobody may be there to read it.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "config/text.h"

namespace gpupool {

inline constexpr int kMostSuffixes = 1000;

/// "report.json", "report.json.1", ...
inline std::string suffixed(const std::string& path, int suffix) {
  return suffix == 0 ? path : path + "." + std::to_string(suffix);
}

enum class Taken : std::uint8_t { kByNone, kByFile, kByDevice, kByOther };

/// For people: "report.json is taken; the report is in report.json.1".
inline std::string taken_text(const std::string& path, const char* what, const std::string& name) {
  return escaped(path, path.size()) + " is taken; the " + what + " is in " + escaped(name, name.size());
}

/// Links are not followed to a device.
inline Taken taken(const std::string& path) {
  struct stat own {};
  struct stat behind {};
  if (lstat(path.c_str(), &own) != 0) return Taken::kByNone;
  if (S_ISCHR(own.st_mode)) return Taken::kByDevice;
  const bool dangles = S_ISLNK(own.st_mode) && stat(path.c_str(), &behind) != 0;
  const auto mode = S_ISLNK(own.st_mode) ? behind.st_mode : own.st_mode;
  return dangles || S_ISREG(mode) || S_ISDIR(mode) ? Taken::kByFile : Taken::kByOther;
}

/// The device, open for writing without waiting; -1: errno says why.
inline int open_device(const std::string& path) {
  return open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

}  // namespace gpupool
