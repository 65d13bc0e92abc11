// How a command line's settings reach the configuration: options with a key, `--set KEY=VALUE`, `--config FILE`.
// What config/ only warns about in a running program is a fault on a command line: Problems, nothing half done.
#pragma once
#include <string>
#include <string_view>

#include "cli/verbs.h"
#include "config/load.h"

namespace gpupool::cli {

struct Setting {
  std::string key;
  std::string value;
};

/// The settings of the verb's options with a key, then those of --set, in order. Every one has been tried.
std::vector<Setting> settings_of(std::string_view verb, const Arguments& arguments);

/// One "KEY=VALUE".
Setting setting_of(std::string_view text, std::string_view option);

/// Puts a setting above what is loaded; a Problem when its key or value is wrong.
void apply(Loaded& loaded, const Setting& setting);

/// The file alone; a Problem when it cannot be used at all. Single bad values stay in `diagnostics`.
Loaded loaded_from(const std::string& file);

}  // namespace gpupool::cli
