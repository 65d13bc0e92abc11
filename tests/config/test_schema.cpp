// The schema names every option, and nothing else.
#include "config/schema.h"

#include <nlohmann/json.hpp>
#include <regex>

#include "config/table.h"
#include "tests/catch.h"

using namespace gpupool;
using Json = nlohmann::json;

namespace {

// The part of JSON Schema that ours uses.
bool accepts(const Json& schema, const Json& value) {
  if (schema.contains("anyOf")) {
    for (const Json& one : schema["anyOf"])
      if (accepts(one, value)) return true;
    return false;
  }
  if (schema.contains("const")) return value == schema["const"];
  if (schema.contains("enum"))
    return std::find(schema["enum"].begin(), schema["enum"].end(), value) != schema["enum"].end();
  const std::string type = schema.at("type");
  if (type == "string") {
    if (!value.is_string()) return false;
    return !schema.contains("pattern") ||
           std::regex_search(value.get<std::string>(), std::regex{schema["pattern"].get<std::string>()});
  }
  if (type == "array") return value.is_array();
  if (type == "integer" && !value.is_number_integer()) return false;
  return value.is_number() && value >= schema["minimum"] && (!schema.contains("maximum") || value <= schema["maximum"]);
}

}  // namespace

TEST_CASE("every option is in the schema, nested and with a point", "[config]") {
  const Json schema = Json::parse(json_schema());
  CHECK(schema["additionalProperties"] == false);
  std::size_t count = 0;
  for (const OptionRow& row : option_rows()) {
    CAPTURE(row.key);
    const Json& nested = schema["properties"][std::string{row.group}]["properties"][std::string{row.name}];
    CHECK(nested == schema["properties"][std::string{row.key}]);
    CHECK(nested["description"] == row.sentence);
    CHECK(accepts(nested, std::string{row.default_text}));
    ++count;
  }
  CHECK(schema["properties"].size() == count + option_groups().size() + 1);
  const Json& device = schema["properties"]["devices"]["patternProperties"]["^([0-9]{1,4}|GPU-.+|MIG-.+)$"];
  CHECK(device["properties"]["pool"] == schema["properties"]["pool"]);
}

TEST_CASE("the schema's patterns agree with the grammar on what each refuses or takes", "[config][case-35][case-36]") {
  const Json schema = Json::parse(json_schema());
  const Json& size = schema["properties"]["pool.size"];
  for (const auto* good : {"8GiB", "8gb", "4096", "92%", "0.92", "1.0", "1.5 GiB", "4096B"}) CHECK(accepts(size, good));
  for (const auto* bad : {"4X", "-1", "", "1e9", "nan", "0,8", "4.0", "auto"}) CHECK_FALSE(accepts(size, bad));
  CHECK(accepts(size, 0.92));
  CHECK(accepts(size, 8589934592));
  CHECK_FALSE(accepts(size, 4.5));
  CHECK_FALSE(accepts(size, -1));
  CHECK_FALSE(accepts(schema["properties"]["pool.strategy"], "BEST_FIT"));
}
