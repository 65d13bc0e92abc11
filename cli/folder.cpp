// See folder.h.
#include "cli/folder.h"

#include <stdlib.h>

#include <cerrno>
#include <fstream>
#include <iterator>

#include "cli/console.h"

namespace gpupool::cli {

Folder::Folder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "gpupool-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw Problem(Exit::output, pattern + ": " + error_text(errno));
  path_ = pattern;
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
