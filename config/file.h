// Reads a configuration file, or says why not. Opened without blocking, so that a FIFO or a terminal cannot hold the
// program up; judged by the opened file itself, so that nothing can be exchanged in between.
// Refused: anything but a regular file, more than kLargestFile bytes, files that every user may write, files of other
// users than this one and root. Holds no state.
#pragma once
#include <cstddef>
#include <string>

namespace gpupool {

inline constexpr std::size_t kLargestFile = std::size_t{1} << 20;

struct FileText {
  std::string text;
  std::string problem;  // empty: the text is the file's
};

FileText read_config_file(const std::string& path);

}  // namespace gpupool
