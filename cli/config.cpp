// `gpupool config`: what holds here and why, or what a file would do.
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "cli/console.h"
#include "cli/settings.h"
#include "config/describe.h"
#include "config/file.h"
#include "config/load.h"
#include "config/schema.h"
#include "config/table.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

Loaded effective(const Arguments& arguments) {
  if (!arguments.has("--config")) return load(environ);
  const std::string named = "GPUPOOL_CONFIG=" + arguments.value("--config");
  std::vector<const char*> environment{named.c_str()};
  for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
  environment.push_back(nullptr);
  return load(environment.data());
}

// Every value, in the groups of the table, so that a person can change what they like.
std::string as_file(const Loaded& loaded) {
  nlohmann::ordered_json root = nlohmann::ordered_json::object();
  for (const OptionRow& row : option_rows())
    root[std::string{row.group}][std::string{row.name}] = row.get(loaded.options);
  for (const DeviceSetting& setting : loaded.options.devices) {
    const OptionRow& row = option_rows()[setting.row];
    root[std::string{kDevicesKey}][setting.device][std::string{row.group}][std::string{row.name}] = setting.text;
  }
  return root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Exit check(const std::string& file) {
  const FileText read = read_config_file(file);
  if (!read.problem.empty()) throw Problem(Exit::input, escaped(file, file.size()) + ": " + read.problem);
  const Loaded loaded = load_file(file);
  for (const Diagnostic& diagnostic : loaded.diagnostics) print(diagnostic.message() + "\n");
  if (!loaded.diagnostics.empty()) return Exit::warning;
  print(escaped(file, file.size()) + ": ok\n");
  return Exit::ok;
}

}  // namespace

Exit config_verb(const Arguments& arguments) {
  if (arguments.has("--schema")) {
    print(json_schema());
    return Exit::ok;
  }
  if (arguments.has("--check")) return check(arguments.value("--check"));
  const Loaded loaded = effective(arguments);
  if (arguments.has("--init")) {
    for (const Diagnostic& diagnostic : loaded.diagnostics) note(diagnostic.message());
    write_new_file(arguments.value("--init"), as_file(loaded));
    return Exit::ok;
  }
  print(arguments.has("--json") ? describe_json(loaded) : describe_text(loaded));
  return Exit::ok;
}

}  // namespace gpupool::cli
