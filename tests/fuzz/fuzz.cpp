// See fuzz.h.
#include "tests/fuzz/fuzz.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

namespace gpupool::fuzz {

InputFile::InputFile(const std::uint8_t* data, std::size_t size)
    : file_(memfd_create("input", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(file_)) {
  if (file_ < 0 || fchmod(file_, 0600) != 0 || write(file_, data, size) != static_cast<ssize_t>(size)) std::abort();
}

InputFile::~InputFile() { close(file_); }

}  // namespace gpupool::fuzz
