// Which executables get a pool. Pure functions.
#pragma once
#include <string_view>

#include "config/options.h"

namespace gpupool {

// `executable` is a path or a name; its last component is matched against shell patterns (*, ?, [...]).
// Included by at least one pattern of include, and by none of exclude.
bool gets_pool(const ProcessOptions& processes, std::string_view executable);

}  // namespace gpupool
