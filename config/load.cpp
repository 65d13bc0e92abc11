// See load.h. One class walks the layers from the weakest to the strongest; a setting that is refused leaves what the
// layers below it chose, and the message names just that.
#include "config/load.h"

#include <algorithm>

#include "config/file.h"
#include "config/json_reader.h"
#include "config/table.h"
#include "config/text.h"

namespace gpupool {
namespace {

constexpr std::string_view kPrefix = "GPUPOOL_";
constexpr std::string_view kConfigVariable = "GPUPOOL_CONFIG";
constexpr std::string_view kDevicesVariable = "GPUPOOL_DEVICES";
// Variables that other parts of gpupool read by themselves.
constexpr std::string_view kOtherVariables[] = {kConfigVariable, kDevicesVariable, "GPUPOOL_DISABLE",
                                                "GPUPOOL_VERBOSE"};
constexpr std::string_view kSimulatorPrefix = "GPUPOOL_SIM_";

std::string_view value_in(const char* const* environment, std::string_view name) {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry{*environment};
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
  }
  return {};
}

bool type_fits(ValueKind kind, JsonType type) {
  switch (type) {
    case JsonType::string:
      return true;
    case JsonType::boolean:
      return kind == ValueKind::on_off;
    case JsonType::list_of_strings:
      return kind == ValueKind::names;
    case JsonType::number:
      return kind == ValueKind::size || kind == ValueKind::size_or_share || kind == ValueKind::growth ||
             kind == ValueKind::handle;
    case JsonType::null:
    case JsonType::empty_object:
    case JsonType::other:
      return false;
  }
  return false;
}

bool is_device_name(std::string_view device) {
  const bool ordinal = !device.empty() && std::ranges::all_of(device, grammar::is_digit);
  const bool canonical = device.size() == 1 || (device.size() < 5 && !device.starts_with('0'));
  return ordinal ? canonical : device.starts_with("GPU-") || device.starts_with("MIG-");
}

std::string bad_value(const OptionRow& row, std::string_view text, Fault fault) {
  std::string problem = in_quotes(text) + " " + std::string{fault_text(fault)};
  if (fault == Fault::not_a_choice || fault == Fault::out_of_range) problem += " (" + range_text(row) + ")";
  return problem;
}

bool is_group(std::string_view key) {
  return key == kDevicesKey || std::ranges::find(option_groups(), key, &OptionGroup::name) != option_groups().end();
}

class Loader {
 public:
  explicit Loader(Loaded& out) : out_{out} {
    if (out_.sources.empty()) out_.sources.resize(option_rows().size(), Source{SourceKind::default_value, {}, 0, 0});
  }

  void file(const std::string& path) {
    out_.file = path;
    const Source source{SourceKind::file, path, 0, 0};
    const FileText read = read_config_file(path);
    if (!read.problem.empty()) {
      report({Severity::warning, source, {}, read.problem, {}, "no file"});
      return;
    }
    json(source, read.text, {});
  }

  void environment(const char* const* entries) {
    std::vector<std::string_view> done;
    for (; entries != nullptr && *entries != nullptr; ++entries) {
      const std::string_view entry{*entries};
      const std::size_t equals = entry.find('=');
      if (!entry.starts_with(kPrefix) || equals == std::string_view::npos) continue;
      const std::string_view name = entry.substr(0, equals);
      if (std::ranges::find(done, name) != done.end()) continue;  // getenv takes the first, too
      done.push_back(name);
      variable(name, entry.substr(equals + 1));
    }
  }

  void set(const Source& source, std::string_view key, std::string_view text, JsonType type) {
    const OptionRow* row = find_option(key);
    if (row == nullptr) return device_or_unknown(source, key, text, type);
    const auto index = static_cast<std::size_t>(row - option_rows().data());
    const Fault fault = type_fits(row->kind, type) ? row->set(out_.options, text) : Fault::wrong_json_type;
    if (fault == Fault::none) {
      out_.sources[index] = source;
      return;
    }
    refuse(source, key, *row, text, fault, row->get(out_.options) + " (" + to_text(out_.sources[index]) + ")");
  }

 private:
  void json(const Source& whole, std::string_view text, const std::string& prefix) {
    const JsonSettings read = read_json(text);
    const auto source = [&whole](int line, int column) { return Source{whole.kind, whole.name, line, column}; };
    for (const JsonFault& fault : read.syntax) {
      report({Severity::warning, source(fault.line, fault.column), {}, fault.problem, {}, "nothing of it"});
    }
    for (const JsonFault& fault : read.duplicates) {
      report({Severity::warning,
              source(fault.line, fault.column),
              prefix + fault.key,
              fault.problem,
              {},
              "the later one"});
    }
    for (const JsonSetting& setting : read.settings) {
      set(source(setting.line, setting.column), prefix + setting.key, setting.text, setting.type);
    }
  }

  void variable(std::string_view name, std::string_view text) {
    const Source source{SourceKind::environment, std::string{name}, 0, 0};
    if (name == kDevicesVariable) return json(source, text, std::string{kDevicesKey} + ".");
    if (name.starts_with(kSimulatorPrefix) || std::ranges::find(kOtherVariables, name) != std::end(kOtherVariables)) {
      return;
    }
    std::vector<std::string> names(std::begin(kOtherVariables), std::end(kOtherVariables));
    for (const OptionRow& row : option_rows()) {
      if (environment_name(row.key) == name) return set(source, row.key, text, JsonType::string);
      names.push_back(environment_name(row.key));
    }
    report(
        {Severity::warning, source, {}, "is no variable of gpupool", std::string{nearest_name(name, names)}, {}, true});
  }

  void device_or_unknown(const Source& source, std::string_view key, std::string_view text, JsonType type) {
    if (is_group(key)) return group(source, key, type);
    std::string_view rest = key;
    if (!rest.starts_with(kDevicesKey) || !rest.substr(kDevicesKey.size()).starts_with('.'))
      return unknown(source, key, {}, key);
    rest.remove_prefix(kDevicesKey.size() + 1);
    const std::size_t point = rest.find('.');
    const std::string_view device = rest.substr(0, point);
    rest.remove_prefix(point == std::string_view::npos ? rest.size() : point + 1);
    const std::string_view prefix = key.substr(0, key.size() - rest.size());

    const OptionRow* row = find_option(rest);
    const bool is_pool = is_device_name(device) && (rest == "pool" || rest.empty());
    if (is_pool && type == JsonType::empty_object) return;
    if (row == nullptr || row->group != "pool") return unknown(source, key, prefix, rest);
    if (!is_device_name(device)) {
      report({Severity::warning,
              source,
              std::string{key},
              in_quotes(device) + " is neither a CUDA ordinal nor a UUID (GPU-... or MIG-...)",
              {},
              {},
              true});
      return;
    }
    Options scratch;
    const Fault fault = type_fits(row->kind, type) ? row->set(scratch, text) : Fault::wrong_json_type;
    if (fault != Fault::none) return refuse(source, key, *row, text, fault, "what holds for the other devices");
    const auto index = static_cast<std::size_t>(row - option_rows().data());
    out_.options.devices.push_back({std::string{device}, index, std::string{text}});
    out_.device_sources.push_back(source);
  }

  void group(const Source& source, std::string_view key, JsonType type) {
    if (type == JsonType::empty_object) return;
    report({Severity::warning, source, std::string{key}, "is no value but a group of options", {}, {}, true});
  }

  void refuse(const Source& source, std::string_view key, const OptionRow& row, std::string_view text, Fault fault,
              std::string used) {
    std::vector<std::string> choices;
    for (const Choice& choice : row.choices) choices.emplace_back(choice.text);
    report({Severity::warning, source, std::string{key}, bad_value(row, text, fault),
            std::string{nearest_name(grammar::trim(text), choices)}, std::move(used)});
  }

  void unknown(const Source& source, std::string_view key, std::string_view prefix, std::string_view rest) {
    std::vector<std::string> keys;
    for (const OptionRow& row : option_rows()) keys.emplace_back(row.key);
    for (const OptionGroup& one : option_groups()) keys.emplace_back(one.name);
    keys.emplace_back(kDevicesKey);
    std::string nearest{nearest_name(rest, keys)};
    if (!nearest.empty()) nearest.insert(0, escaped(prefix));
    report({Severity::warning, source, std::string{key}, "is no option", std::move(nearest), {}, true});
  }

  void report(Diagnostic diagnostic) {
    if (out_.diagnostics.size() > kMostDiagnostics) return;
    if (out_.diagnostics.size() == kMostDiagnostics) {
      diagnostic = {Severity::warning, {}, {}, "more faults than these are not listed", {}, {}};
    }
    out_.diagnostics.push_back(std::move(diagnostic));
  }

  Loaded& out_;
};

}  // namespace

Loaded load(const char* const* environment) {
  Loaded out;
  Loader loader{out};
  if (const std::string_view path = value_in(environment, kConfigVariable); !path.empty())
    loader.file(std::string{path});
  loader.environment(environment);
  return out;
}

Loaded load_file(const std::string& path) {
  Loaded out;
  Loader{out}.file(path);
  return out;
}

void apply_setting(Loaded& loaded, const Source& source, std::string_view key, std::string_view text) {
  Loader{loaded}.set(source, key, text, JsonType::string);
}

PoolOptions pool_options_for(const Options& options, int ordinal, std::string_view uuid) {
  Options merged;
  merged.pool = options.pool;
  const std::string number = std::to_string(ordinal);
  const auto apply = [&](auto names_it) {
    for (const DeviceSetting& setting : options.devices) {
      if (names_it(setting.device)) option_rows()[setting.row].set(merged, setting.text);
    }
  };
  apply([&](std::string_view device) { return device == number; });
  apply([&](std::string_view device) { return grammar::equal_ignoring_case(device, uuid); });
  return merged.pool;
}

}  // namespace gpupool
