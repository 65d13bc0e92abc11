// `gpupool config`: what it shows, what it finds wrong, what it writes and what it never replaces.
#include <nlohmann/json.hpp>

#include "config/table.h"
#include "tests/catch.h"
#include "tests/cli/run.h"

using namespace gpupool::tests;

TEST_CASE("config shows every value and where it came from") {
  const Folder folder;
  const std::string file = folder.file("c.json", R"({"pool": {"size": "8GiB"}})");
  const Outcome shown = command({"config", "--json"}, {{"GPUPOOL_CONFIG", file}, {"GPUPOOL_POOL_MAX", "10GiB"}});
  CHECK(shown.status == 0);
  const auto json = nlohmann::json::parse(shown.out);
  CHECK(json["file"] == file);
  std::map<std::string, std::pair<std::string, std::string>> rows;
  for (const auto& row : json["options"]) rows[row["key"]] = {row["value"], row["source"]};
  CHECK(rows["pool.size"] == std::pair<std::string, std::string>{"8GiB", file + ":1:11"});
  CHECK(rows["pool.max"] == std::pair<std::string, std::string>{"10GiB", "GPUPOOL_POOL_MAX"});
  CHECK(rows["pool.headroom"].second == "default");
  CHECK(command({"config", "--config", file}).out.find("8GiB") != std::string::npos);
}

TEST_CASE("--check names place and nearest name") {
  const Folder folder;
  const std::string good = folder.file("good.json", R"({"pool": {"size": "8GiB"}})");
  const std::string bad = folder.file("bad.json", "{\n  \"pool\": {\"siez\": \"8GiB\",\n \"handle\": \"3MiB\"}}");
  const std::string broken = folder.file("broken.json", "{\"pool\": ");
  CHECK(command({"config", "--check", good}).status == 0);
  const Outcome wrong = command({"config", "--check", bad});
  CHECK(wrong.status == 1);
  CHECK(contains(wrong.out, bad + ":2:12: pool.siez: is no option and is ignored; did you mean pool.size?\n"));
  CHECK(contains(wrong.out, bad + ":3:2: pool.handle: \"3MiB\" is out of range"));
  CHECK(command({"config", "--check", broken}).status == 1);
  CHECK(command({"config", "--check", folder / "missing"}).status == 3);
}

TEST_CASE("--init writes a file that --check accepts, and replaces nothing") {
  const Folder folder;
  const std::string file = folder / "new.json";
  CHECK(command({"config", "--init", file}, {{"GPUPOOL_POOL_SIZE", "3GiB"}}).status == 0);
  CHECK(command({"config", "--check", file}).status == 0);
  CHECK(nlohmann::json::parse(read_text(file))["pool"]["size"] == "3GiB");
  const std::string before = read_text(file);
  const Outcome again = command({"config", "--init", file});
  CHECK(again.status == 5);
  CHECK(contains(again.err, "exists already and is not overwritten"));
  CHECK(read_text(file) == before);
}

TEST_CASE("--init explains each option beside it, and the defaults come back") {
  const Folder folder;
  const std::string file = folder / "new.json";
  REQUIRE(command({"config", "--init", file}).status == 0);
  CHECK(command({"config", "--check", file}).out == file + ": ok\n");
  const auto written = nlohmann::json::parse(read_text(file));
  for (const gpupool::OptionRow& row : gpupool::option_rows()) {
    CAPTURE(row.key);
    const auto& group = written[std::string{row.group}];
    CHECK(group[std::string{row.name}].is_string());
    const std::string comment = group["$" + std::string{row.name}];
    CHECK(comment.starts_with(row.sentence));
    CHECK(contains(comment, "Default: " + std::string{row.default_text.empty() ? "empty" : row.default_text}));
    CHECK(contains(comment, "unit: " + std::string{row.unit}));
  }
  const auto options = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"config", "--json"});
    std::map<std::string, std::string> values;
    const auto told = nlohmann::json::parse(command(more).out);
    for (const auto& row : told["options"]) values[row["key"]] = row["value"];
    return values;
  };
  CHECK(options({"--config", file}) == options({}));
}

TEST_CASE("comments are keys that begin with $, and nothing else") {
  const Folder folder;
  const std::string commented = folder.file("c.json", R"({"$pool.size": ["why"], "pool": {"size": "8GiB", "$": 1},
    "devices": {"$note": "", "0": {"$": {}, "pool": {"$max": "", "max": "9GiB"}}}})");
  const Outcome fine = command({"config", "--check", commented});
  CHECK(fine.out == commented + ": ok\n");
  const std::string slashes = folder.file("s.json", "{\n  // eight\n  \"pool.size\": \"8GiB\"}");
  const Outcome refused = command({"config", "--check", slashes});
  CHECK(refused.status == 1);
  CHECK(contains(refused.out, slashes + ":2:3: is not JSON"));
}

TEST_CASE("--schema is JSON") { CHECK(nlohmann::json::parse(command({"config", "--schema"}).out).is_object()); }

TEST_CASE("no colours where no terminal is") {
  CHECK_FALSE(contains(command({"doctor"}, {{"TERM", "xterm"}}).out, "\033"));
}

TEST_CASE("options that each ask for another work are refused together, and nothing is written") {
  const Folder folder;
  const std::vector<std::vector<std::string>> both = {
      {"config", "--init", folder / "made.json", "--schema"},
      {"config", "--init", folder / "made.json", "--check", folder / "none.json"},
      {"report", "--torch-snapshot", folder / "made.json", "--html", folder / "made.html", "trace"},
      {"top", "--json", "--openmetrics"},
  };
  for (const std::vector<std::string>& words : both) {
    const Outcome outcome = command(words);
    CAPTURE(words, outcome.err);
    CHECK(outcome.status == 2);
    CHECK(contains(outcome.err, "one of them at a time"));
  }
  CHECK(read_text(folder / "made.json").empty());
}
