// The fixed parts of the page, put into the command at build time. `library` is Dygraphs (MIT), which draws the curve;
// it is empty where the build did not find it.
#pragma once
#include <string_view>

namespace gpupool::cli::assets {

extern const std::string_view page;
extern const std::string_view style;
extern const std::string_view script;
extern const std::string_view library;
extern const std::string_view library_style;

}  // namespace gpupool::cli::assets
