// See folder.h.
#include "cli/folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "cli/console.h"
#include "config/text.h"

namespace gpupool::cli {

namespace {

constexpr off_t kRoom = 1 << 20;

// Whoever writes here later cannot say that the disk is full.
int room_in(const std::filesystem::path& folder) {
  const std::string probe = folder / "room";
  const int file = open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return errno;
  const int error = posix_fallocate(file, 0, kRoom);
  close(file);
  unlink(probe.c_str());
  return error;
}

}  // namespace

Folder::Folder() {
  const char* wanted = std::getenv("TMPDIR");
  std::string pattern = std::string{wanted != nullptr && *wanted != '\0' ? wanted : "/tmp"} + "/gpupool-XXXXXX";
  const auto refuse = [&](int error) {
    throw Problem(Exit::output, "a temporary folder is needed (TMPDIR): " + escaped(pattern, pattern.size()) + ": " +
                                    error_text(error));
  };
  if (mkdtemp(pattern.data()) == nullptr) refuse(errno);
  path_ = pattern;
  if (const int error = room_in(path_)) {
    std::filesystem::remove(path_);
    refuse(error);
  }
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string read_small_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace gpupool::cli
