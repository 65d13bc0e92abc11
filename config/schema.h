// The JSON Schema (draft 2020-12) of the configuration file, from the table: for editors and for `gpupool config
// --schema`. What a schema cannot say (ranges of sizes written as texts) is left to loading.
#pragma once
#include <string>

namespace gpupool {

std::string json_schema();

}  // namespace gpupool
