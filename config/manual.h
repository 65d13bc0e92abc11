// docs/configuration.md, from the table: what can be set, how values are written, which value wins.
#pragma once
#include <string>

namespace gpupool {

std::string manual_markdown();

}  // namespace gpupool
