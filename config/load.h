// The effective options of a process: default < JSON file named by GPUPOOL_CONFIG < environment, each key for itself.
// Every value knows where it came from; whatever could not be used is a Diagnostic, and the value below it holds.
// The environment comes in as an array, so that tests and the command need not change their own.
// Called once in a process, before there is a second user of the result; throws nothing but std::bad_alloc.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "config/diagnostic.h"
#include "config/options.h"

namespace gpupool {

// A fault in the input costs one message; a file full of them is cut off here.
inline constexpr std::size_t kMostDiagnostics = 20;

struct Loaded {
  Options options;
  std::vector<Source> sources;         // by row of option_rows()
  std::vector<Source> device_sources;  // by element of options.devices
  std::string file;                    // what GPUPOOL_CONFIG names; empty without one
  Diagnostics diagnostics;
};

// `environment` is an array of "NAME=value" that ends with nullptr, as environ is; nullptr is an empty one.
Loaded load(const char* const* environment);

// The defaults under the file alone; for `gpupool config --check`.
Loaded load_file(const std::string& path);

// One more layer above what is loaded, such as a command line's `--set pool.handle=32MiB`.
void apply_setting(Loaded& loaded, const Source& source, std::string_view key, std::string_view text);

// The pool options of one device: overrides by ordinal, and over these the ones by UUID (case does not matter there).
PoolOptions pool_options_for(const Options& options, int ordinal, std::string_view uuid);

}  // namespace gpupool
