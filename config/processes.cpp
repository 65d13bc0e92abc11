// See processes.h.
#include "config/processes.h"

#include <fnmatch.h>

#include <algorithm>

namespace gpupool {

bool gets_pool(const ProcessOptions& processes, std::string_view executable) {
  const std::string name{executable.substr(executable.rfind('/') + 1)};
  const auto matches = [&name](const std::string& pattern) { return fnmatch(pattern.c_str(), name.c_str(), 0) == 0; };
  return std::ranges::any_of(processes.include, matches) && std::ranges::none_of(processes.exclude, matches);
}

}  // namespace gpupool
