// What `gpupool config` shows, and the page of the docs.
#include "config/describe.h"

#include <nlohmann/json.hpp>

#include "config/manual.h"
#include "config/table.h"
#include "tests/catch.h"
#include "tests/config/support.h"

using namespace gpupool;
using test::Environment;

TEST_CASE("every option is described with value and source", "[config]") {
  const Environment environment{"GPUPOOL_POOL_SIZE=8GiB", "GPUPOOL_STATS_PATH=/a\xff/%p", "GPUPOOL_POOL_MAX=4X",
                                R"(GPUPOOL_DEVICES={"0": {"pool.size": "1GiB"}})"};
  const Loaded loaded = load(environment.get());
  const std::string text = describe_text(loaded);
  for (const OptionRow& row : option_rows()) CHECK(text.find(std::string{row.key} + " ") != std::string::npos);
  CHECK(text.find("GPUPOOL_POOL_SIZE\n") != std::string::npos);
  CHECK(text.find("/a\\xff/%p") != std::string::npos);
  CHECK(text.find("devices.0.pool.size") != std::string::npos);
  CHECK(text.find("pool.max: \"4X\" has an unknown unit") != std::string::npos);

  const auto json = nlohmann::json::parse(describe_json(loaded));
  REQUIRE(json["options"].size() == option_rows().size());
  for (std::size_t i = 0; i < option_rows().size(); ++i) CHECK(json["options"][i]["key"] == option_rows()[i].key);
  CHECK(json["options"][1]["value"] == "8GiB");
  CHECK(json["options"][1]["source"] == "GPUPOOL_POOL_SIZE");
  CHECK(json["options"][1]["default"] == "92%");
  CHECK(json["options"][1]["environment"] == "GPUPOOL_POOL_SIZE");
  CHECK(json["file"].is_null());
  CHECK(json["devices"][0]["value"] == "1GiB");
  CHECK(json["diagnostics"].size() == 1);
}

TEST_CASE("docs/configuration.md is what the table says", "[config]") {
  INFO("run scripts/generate-config-docs");
  CHECK(test::read_text(GPUPOOL_SOURCE_DIR "/docs/configuration.md") == manual_markdown());
}

TEST_CASE("the page names every option and its variable", "[config]") {
  const std::string page = manual_markdown();
  for (const OptionRow& row : option_rows()) {
    CHECK(page.find("`" + std::string{row.key} + "`") != std::string::npos);
    CHECK(page.find("`" + environment_name(row.key) + "`") != std::string::npos);
  }
}
