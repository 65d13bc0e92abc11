// Writes a whole text to an open file, however many calls that takes: the one loop for reports, traces and the command.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace gpupool {

/// False when the file takes no more; errno says why. What was written until then stays written.
inline bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = EIO;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace gpupool
