// See describe.h.
#include "config/describe.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "config/table.h"
#include "config/text.h"

namespace gpupool {
namespace {

struct Line {
  std::string key;
  std::string value;
  std::string source;
};

std::vector<Line> option_lines(const Loaded& loaded) {
  std::vector<Line> lines;
  for (std::size_t i = 0; i < option_rows().size(); ++i) {
    const OptionRow& row = option_rows()[i];
    lines.push_back({std::string{row.key}, row.get(loaded.options), to_text(loaded.sources[i])});
  }
  return lines;
}

std::vector<Line> device_lines(const Loaded& loaded) {
  std::vector<Line> lines;
  for (std::size_t i = 0; i < loaded.options.devices.size(); ++i) {
    const DeviceSetting& setting = loaded.options.devices[i];
    lines.push_back(
        {std::string{kDevicesKey} + "." + setting.device + "." + std::string{option_rows()[setting.row].key},
         setting.text, to_text(loaded.device_sources[i])});
  }
  return lines;
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

}  // namespace

std::string describe_text(const Loaded& loaded) {
  std::vector<Line> lines = option_lines(loaded);
  for (Line& line : device_lines(loaded)) lines.push_back(std::move(line));
  std::size_t key_width = 0;
  std::size_t value_width = 0;
  for (Line& line : lines) {
    line.key = escaped(line.key);
    line.value = line.value.empty() ? "-" : escaped(line.value);
    key_width = std::max(key_width, line.key.size());
    value_width = std::max(value_width, std::min(line.value.size(), std::size_t{32}));
  }
  std::string text;
  for (const Line& line : lines) {
    text += padded(line.key, key_width) + "  " + padded(line.value, value_width) + "  " + line.source + "\n";
  }
  for (const Diagnostic& diagnostic : loaded.diagnostics) text += diagnostic.message() + "\n";
  return text;
}

std::string describe_json(const Loaded& loaded) {
  using Json = nlohmann::ordered_json;
  Json out;
  out["file"] = loaded.file.empty() ? Json{} : Json(loaded.file);
  out["options"] = Json::array();
  const std::vector<Line> lines = option_lines(loaded);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const OptionRow& row = option_rows()[i];
    out["options"].push_back({{"key", lines[i].key},
                              {"value", lines[i].value},
                              {"source", lines[i].source},
                              {"default", row.default_text},
                              {"environment", environment_name(row.key)},
                              {"unit", row.unit},
                              {"description", row.sentence}});
  }
  out["devices"] = Json::array();
  const std::vector<Line> devices = device_lines(loaded);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const DeviceSetting& setting = loaded.options.devices[i];
    out["devices"].push_back({{"device", setting.device},
                              {"key", option_rows()[setting.row].key},
                              {"value", setting.text},
                              {"source", devices[i].source}});
  }
  out["diagnostics"] = Json::array();
  for (const Diagnostic& diagnostic : loaded.diagnostics) out["diagnostics"].push_back(diagnostic.message());
  // Paths may be any bytes; JSON may not.
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace gpupool
