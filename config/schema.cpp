// See schema.h.
#include "config/schema.h"

#include <nlohmann/json.hpp>

#include "config/table.h"

namespace gpupool {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSize = "^\\s*[0-9]+(\\.[0-9]+)?\\s*([kKmMgGtT][iI]?[bB]?|[bB])\\s*$|^\\s*[0-9]+\\s*$";
constexpr const char* kShare = "^\\s*[0-9]+(\\.[0-9]+)?\\s*%\\s*$|^\\s*[01]\\.[0-9]+\\s*$|^\\s*1\\s*$";
constexpr const char* kFactor = "^\\s*[0-9]+(\\.[0-9]+)?\\s*[xX]\\s*$";
constexpr const char* kComment = "^\\$";
constexpr const char* kDuration = "^\\s*[0-9]+(\\.[0-9]+)?\\s*(ms|s|min)\\s*$";

Json pattern(const char* text) { return {{"type", "string"}, {"pattern", text}}; }
Json bytes() { return {{"type", "integer"}, {"minimum", 0}}; }
Json fraction() { return {{"type", "number"}, {"minimum", 0.01}, {"maximum", 1.0}}; }

Json any_of(std::initializer_list<Json> kinds) { return {{"anyOf", Json::array_t(kinds)}}; }

Json type_of(const OptionRow& row) {
  switch (row.kind) {
    case ValueKind::size:
      return any_of({pattern(kSize), bytes()});
    case ValueKind::size_or_share:
      return any_of({pattern(kSize), pattern(kShare), bytes(), fraction()});
    case ValueKind::growth:
      return any_of({pattern(kSize), pattern(kFactor), bytes()});
    case ValueKind::handle:
      return any_of({Json{{"const", "auto"}}, pattern(kSize), bytes()});
    case ValueKind::on_off:
      return {{"enum", Json::array({true, false, "on", "off", "true", "false", "1", "0"})}};
    case ValueKind::duration:
      return pattern(kDuration);
    case ValueKind::text:
      return {{"type", "string"}};
    case ValueKind::names:
      return any_of({Json{{"type", "string"}}, Json{{"type", "array"}, {"items", pattern("^[^,]*$")}}});
    case ValueKind::choice: {
      Json names = Json::array();
      for (const Choice& choice : row.choices) names.push_back(choice.text);
      return {{"enum", names}};
    }
  }
  return {};
}

Json option_schema(const OptionRow& row) {
  Json option = type_of(row);
  option["description"] = row.sentence;
  option["default"] = row.default_text;
  return option;
}

// The members of a group; with `dotted`, under their full keys instead.
enum class Naming { short_names, dotted };
void add_group(Json& properties, std::string_view group, Naming naming) {
  for (const OptionRow& row : option_rows()) {
    if (row.group != group) continue;
    properties[std::string{naming == Naming::dotted ? row.key : row.name}] = option_schema(row);
  }
}

Json object(Json properties, std::string_view sentence) {
  return {{"type", "object"},
          {"description", sentence},
          {"properties", std::move(properties)},
          {"patternProperties", {{kComment, Json::object()}}},
          {"additionalProperties", false}};
}

Json group_schema(const OptionGroup& group) {
  Json properties = Json::object();
  add_group(properties, group.name, Naming::short_names);
  return object(std::move(properties), group.sentence);
}

Json device_schema() {
  Json properties = Json::object();
  properties["pool"] = group_schema(option_groups().front());
  add_group(properties, "pool", Naming::dotted);
  return object(std::move(properties), kDevicesSentence);
}

}  // namespace

std::string json_schema() {
  Json properties = Json::object();
  for (const OptionGroup& group : option_groups()) properties[std::string{group.name}] = group_schema(group);
  for (const OptionGroup& group : option_groups()) add_group(properties, group.name, Naming::dotted);
  Json devices = object(Json::object(), kDevicesSentence);
  devices["patternProperties"]["^([0-9]{1,4}|GPU-.+|MIG-.+)$"] = device_schema();
  properties[std::string{kDevicesKey}] = std::move(devices);

  Json schema = object(std::move(properties), "Configuration of gpupool.");
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  schema["title"] = "gpupool";
  return schema.dump(2) + "\n";
}

}  // namespace gpupool
