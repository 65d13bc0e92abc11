// The effective configuration, for `gpupool config`: every key, its value and where it came from.
// One walk over the table, shown for people or for programs.
#pragma once
#include <string>

#include "config/load.h"

namespace gpupool {

// Aligned columns, then the messages.
std::string describe_text(const Loaded& loaded);

// {"file": ..., "options": [{"key", "value", "source", "default", "environment", "unit", "description"}...],
//  "devices": [{"device", "key", "value", "source"}...], "diagnostics": ["..."]}
std::string describe_json(const Loaded& loaded);

}  // namespace gpupool
