// See settings.h.
#include "cli/settings.h"

#include "cli/console.h"
#include "config/file.h"
#include "config/json_reader.h"
#include "config/text.h"

namespace gpupool::cli {

Setting setting_of(std::string_view text, std::string_view option) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    throw Problem(Exit::usage,
                  std::string{option} + ": " + in_quotes(text) + " is not KEY=VALUE, such as pool.handle=32MiB");
  }
  return {std::string{text.substr(0, equals)}, std::string{text.substr(equals + 1)}};
}

void apply(Loaded& loaded, const Setting& setting) {
  Loaded tried = loaded;
  tried.diagnostics.clear();
  apply_setting(tried, Source{SourceKind::none, {}, 0, 0}, setting.key, setting.value);
  if (!tried.diagnostics.empty()) {
    Diagnostic fault = tried.diagnostics.front();
    fault.used.clear();
    fault.ignored = false;  // nothing is done
    throw Problem(Exit::usage, fault.message());
  }
  tried.diagnostics = loaded.diagnostics;
  loaded = std::move(tried);
}

std::vector<Setting> settings_of(std::string_view verb, const Arguments& arguments) {
  std::vector<Setting> settings;
  Loaded scratch;
  const auto add = [&](Setting setting) {
    apply(scratch, setting);
    settings.push_back(std::move(setting));
  };
  for (const VerbOption& option : find_verb(verb)->options) {
    if (!option.key.empty() && arguments.has(option.name)) add({std::string{option.key}, arguments.value(option.name)});
  }
  for (const std::string& text : arguments.values("--set")) add(setting_of(text, "--set"));
  return settings;
}

Loaded loaded_from(const std::string& file) {
  const FileText read = read_config_file(file);
  if (!read.problem.empty()) throw Problem(Exit::input, escaped(file, file.size()) + ": " + read.problem);
  const JsonSettings json = read_json(read.text);
  if (!json.syntax.empty()) {
    const JsonFault& fault = json.syntax.front();
    throw Problem(Exit::input,
                  to_text(Source{SourceKind::file, file, fault.line, fault.column}) + ": " + fault.problem);
  }
  return load_file(file);
}

}  // namespace gpupool::cli
