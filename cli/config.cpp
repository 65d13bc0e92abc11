// `gpupool config`: what holds here and why, or what a file would do.
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "cli/console.h"
#include "cli/settings.h"
#include "config/describe.h"
#include "config/file.h"
#include "config/json_reader.h"
#include "config/load.h"
#include "config/schema.h"
#include "config/table.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

Loaded effective(const Arguments& arguments) {
  if (!arguments.has("--config")) return load(environ);
  loaded_from(arguments.value("--config"));  // a Problem where it cannot be used at all
  const std::string named = "GPUPOOL_CONFIG=" + arguments.value("--config");
  std::vector<const char*> environment{named.c_str()};
  for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
  environment.push_back(nullptr);
  return load(environment.data());
}

// Meaning, default and unit, for the key beside the option's own.
std::string comment_on(const OptionRow& row) {
  std::string text{row.sentence};
  for (const Choice& choice : row.choices) {
    text += " " + std::string{choice.text} + ": " + std::string{choice.sentence} + ".";
  }
  text += " Default: " + (row.default_text.empty() ? "empty" : std::string{row.default_text}) +
          "; unit: " + std::string{row.unit};
  if (const std::string range = range_text(row); row.choices.empty() && !range.empty()) text += ", " + range;
  return text + ".";
}

// Every value with its meaning, in the groups of the table, so that a person can change what they like.
std::string as_file(const Loaded& loaded) {
  nlohmann::ordered_json root = nlohmann::ordered_json::object();
  const std::string mark(1, kCommentMark);
  root[mark + "comment"] = "Keys that begin with " + mark +
                           " are comments. GPUPOOL_CONFIG=FILE or gpupool run --config FILE uses this file.";
  for (const OptionGroup& group : option_groups()) root[std::string{group.name}][mark + "comment"] = group.sentence;
  for (const OptionRow& row : option_rows()) {
    auto& group = root[std::string{row.group}];
    group[mark + std::string{row.name}] = comment_on(row);
    group[std::string{row.name}] = row.get(loaded.options);
  }
  for (const DeviceSetting& setting : loaded.options.devices) {
    const OptionRow& row = option_rows()[setting.row];
    root[std::string{kDevicesKey}][setting.device][std::string{row.group}][std::string{row.name}] = setting.text;
  }
  return root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string faults_json(const std::string& file, const Diagnostics& faults) {
  nlohmann::ordered_json json{{"file", file}, {"ok", faults.empty()}, {"faults", nlohmann::ordered_json::array()}};
  for (const Diagnostic& fault : faults) {
    json["faults"].push_back({{"line", fault.source.line},
                              {"column", fault.source.column},
                              {"key", fault.key},
                              {"problem", fault.problem},
                              {"nearest", fault.nearest},
                              {"used", fault.used}});
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Exit check(const Arguments& arguments) {
  const std::string file = arguments.value("--check");
  const FileText read = read_config_file(file);
  if (!read.problem.empty()) throw Problem(Exit::input, escaped(file, file.size()) + ": " + read.problem);
  const Loaded loaded = load_file(file);
  const Exit status = loaded.diagnostics.empty() ? Exit::ok : Exit::warning;
  if (arguments.has("--json")) {
    print(faults_json(file, loaded.diagnostics));
    return status;
  }
  for (const Diagnostic& diagnostic : loaded.diagnostics) print(diagnostic.message() + "\n");
  if (status == Exit::ok) print(escaped(file, file.size()) + ": ok\n");
  return status;
}

}  // namespace

Exit config_verb(const Arguments& arguments) {
  arguments.allow_one_of({"--schema", "--check", "--init"});
  if (arguments.has("--schema")) {
    print(json_schema());
    return Exit::ok;
  }
  if (arguments.has("--check")) return check(arguments);
  const Loaded loaded = effective(arguments);
  if (arguments.has("--init")) {
    for (const Diagnostic& diagnostic : loaded.diagnostics) note(diagnostic.message());
    write_new_file(arguments.value("--init"), as_file(loaded));
    return Exit::ok;
  }
  print(arguments.has("--json") ? describe_json(loaded) : describe_text(loaded));
  return loaded.diagnostics.empty() ? Exit::ok : Exit::warning;
}

}  // namespace gpupool::cli
