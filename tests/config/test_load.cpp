// Precedence, sources and messages of the layers.
#include "config/load.h"

#include <algorithm>
#include <clocale>

#include "config/table.h"
#include "config/text.h"
#include "tests/catch.h"
#include "tests/config/support.h"

using namespace gpupool;
using test::Environment;
using test::Folder;
using test::messages;

namespace {

const Source& source_of(const Loaded& loaded, std::string_view key) {
  return loaded.sources[static_cast<std::size_t>(find_option(key) - option_rows().data())];
}

Loaded load_text(std::string_view text) {
  const Folder folder;
  return load_file(folder.write("c.json", text));
}

// The one message without the folder's name.
std::string only_message(const Loaded& loaded) {
  CAPTURE(messages(loaded.diagnostics));
  REQUIRE(loaded.diagnostics.size() == 1);
  const std::string text = loaded.diagnostics[0].message();
  CHECK(test::is_one_printable_line(text));
  const std::size_t name = text.find("c.json");
  return name == std::string::npos ? text : text.substr(name);
}

}  // namespace

TEST_CASE("an empty environment gives the defaults", "[config]") {
  for (const Loaded& loaded : {load(nullptr), load(Environment{}.get())}) {
    CHECK(loaded.options == Options{});
    CHECK(loaded.diagnostics.empty());
    CHECK(to_text(source_of(loaded, "pool.size")) == "default");
  }
  CHECK(load(Environment{"HOME=/", "PATH"}.get()).options == Options{});
}

TEST_CASE("environment over file over default, for each key", "[config][case-38]") {
  const Folder folder;
  const std::string path = folder.write("c.json", "{\"pool\": {\"size\": \"8GiB\",\n \"max\": \"16GiB\"}}");
  const Environment environment{"GPUPOOL_CONFIG=" + path, "GPUPOOL_POOL_SIZE=4GiB", "GPUPOOL_STATS_SUMMARY=off"};
  const Loaded loaded = load(environment.get());
  CHECK(loaded.diagnostics.empty());
  CHECK(loaded.file == path);
  CHECK(loaded.options.pool.size.bytes == 4_GiB);
  CHECK(loaded.options.pool.max.bytes == 16_GiB);
  CHECK_FALSE(loaded.options.stats.summary);
  CHECK(to_text(source_of(loaded, "pool.size")) == "GPUPOOL_POOL_SIZE");
  CHECK(to_text(source_of(loaded, "pool.max")) == path + ":2:2");
  CHECK(to_text(source_of(loaded, "pool.growth")) == "default");
}

TEST_CASE("a bad value falls back to the layer below, and says so", "[config][case-35][case-38]") {
  const Folder folder;
  const std::string path = folder.write("c.json", R"({"pool.size": "8GiB"})");
  const Loaded over_file = load(Environment{"GPUPOOL_CONFIG=" + path, "GPUPOOL_POOL_SIZE=-1"}.get());
  CHECK(over_file.options.pool.size.bytes == 8_GiB);
  REQUIRE(over_file.diagnostics.size() == 1);
  CHECK(over_file.diagnostics[0].message() ==
        "GPUPOOL_POOL_SIZE: pool.size: \"-1\" is negative; using 8GiB (" + path + ":1:2)");

  const Loaded over_default = load(Environment{"GPUPOOL_POOL_STRATEGY=Best_Fit"}.get());
  CHECK(over_default.options == Options{});
  CHECK(only_message(over_default) ==
        "GPUPOOL_POOL_STRATEGY: pool.strategy: \"Best_Fit\" is not one of the names this option takes "
        "(best_fit, auto_growth, passthrough, off); did you mean best_fit?; using best_fit (default)");
}

TEST_CASE("every bad size is refused by name and leaves the default", "[config][case-35][case-36]") {
  for (const std::string text : {"-1", "", "1e9", "99999999999999999999G", "4X", "100", "4.0", "-0.5", "nan", "0,8"}) {
    const Loaded loaded = load(Environment{"GPUPOOL_POOL_SIZE=" + text}.get());
    CHECK(loaded.options == Options{});
    const std::string message = only_message(loaded);
    CHECK(message.starts_with("GPUPOOL_POOL_SIZE: pool.size: " + in_quotes(text) + " "));
    CHECK(message.ends_with("; using 92% (default)"));
  }
}

TEST_CASE("unknown variables of ours get a warning, others none", "[config][case-38]") {
  CHECK(only_message(load(Environment{"GPUPOOL_POOL_SISE=8GiB"}.get())) ==
        "GPUPOOL_POOL_SISE: is no variable of gpupool and is ignored; did you mean GPUPOOL_POOL_SIZE?");
  CHECK(only_message(load(Environment{"GPUPOOL_CONFG=/x"}.get())) ==
        "GPUPOOL_CONFG: is no variable of gpupool and is ignored; did you mean GPUPOOL_CONFIG?");
  CHECK(only_message(load(Environment{"GPUPOOL_=1"}.get())) == "GPUPOOL_: is no variable of gpupool and is ignored");
  const Environment quiet{"GPUPOOL_DISABLE=1", "GPUPOOL_VERBOSE=1", "GPUPOOL_SIM_DEVICES=2",
                          "GPUPOOL_CONFIG=", "GPU=1"};
  CHECK(load(quiet.get()).diagnostics.empty());
}

TEST_CASE("of a variable given twice the first counts, as for getenv", "[config]") {
  const Loaded loaded = load(Environment{"GPUPOOL_POOL_SIZE=4GiB", "GPUPOOL_POOL_SIZE=5GiB"}.get());
  CHECK(loaded.options.pool.size.bytes == 4_GiB);
}

TEST_CASE("each fault of a file is one line with its place", "[config][case-38]") {
  struct Row {
    std::string_view text;
    std::string_view message;  // up to where the parser's own words begin
  };
  const Row rows[] = {
      {"{\"pool\": {\"size\": \"8GiB\",}}", "c.json:1:26: is not JSON: "},
      {"{\n  // mine\n}", "c.json:2:3: is not JSON: "},
      {"", "c.json:1:1: is empty; using nothing of it"},
      {"[]", "c.json:1:1: does not hold a JSON object; using nothing of it"},
      {"{\"pool.size\": \"8GiB\",\n \"pool.size\": \"9GiB\"}",
       "c.json:2:2: pool.size: is given twice; using the later one"},
      {"{\n \"pool\": {\"sise\": \"8GiB\"}}",
       "c.json:2:11: pool.sise: is no option and is ignored; did you mean pool.size?"},
      {"{\"pool\": 5}", "c.json:1:2: pool: is no value but a group of options and is ignored"},
      {"{\"Pool\": {}}", "c.json:1:2: Pool: is no option and is ignored; did you mean pool?"},
      {"{\n \"pol\": {\"$why\": 1}}", "c.json:2:2: pol: is no option and is ignored; did you mean pool?"},
      {"{\"pool\": {\"size\": {}}}", "c.json:1:11: pool.size: \"{}\" has the wrong JSON type"},
      {"{\"devices\": {\"0\": {\"pol\": {}}}}",
       "c.json:1:20: devices.0.pol: is no option and is ignored; did you mean devices.0.pool?"},
      {"{\"pool\": {\"strategy\": \"AUTO_GROWTH\"}}",
       "c.json:1:11: pool.strategy: \"AUTO_GROWTH\" is not one of the names this option takes (best_fit, auto_growth, "
       "passthrough, off); did you mean auto_growth?; using best_fit (default)"},
      {"{\"pool\": {\"size\": null}}",
       "c.json:1:11: pool.size: \"null\" has the wrong JSON type for this option; using 92% (default)"},
      {"{\"pool\": {\"size\": true}}", "c.json:1:11: pool.size: \"true\" has the wrong JSON type"},
      {"{\"stats\": {\"path\": 5}}", "c.json:1:12: stats.path: \"5\" has the wrong JSON type"},
      {"{\"stats\": {\"path\": \"a\\u0000b\"}}", "c.json:1:12: stats.path: \"a\\x00b\" contains a control character"},
      {"{\"processes\": {\"include\": [1]}}", "c.json:1:16: processes.include: \"[...]\" has the wrong JSON type"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(only_message(load_text(row.text)).starts_with(row.message));
  }
  CHECK(
      load_text(R"({"pool": {}, "stats": {"$why": {}}, "devices": {"0": {}, "1": {"pool": {}}}})").diagnostics.empty());
}

TEST_CASE("a number as string and a number are the same value", "[config][case-38]") {
  CHECK(load_text(R"({"pool.size": "8589934592"})").options == load_text(R"({"pool.size": 8589934592})").options);
  CHECK(load_text(R"({"pool.size": "0.5"})").options == load_text(R"({"pool.size": 0.5})").options);
  CHECK(load_text(R"({"stats.summary": "off"})").options == load_text(R"({"stats.summary": false})").options);
  CHECK(load_text(R"({"processes.include": ["a", "b"]})").options ==
        load_text(R"({"processes.include": "a,b"})").options);
}

TEST_CASE("a file that cannot be used costs one line", "[config][case-38]") {
  const Folder folder;
  const Loaded missing = load(Environment{"GPUPOOL_CONFIG=" + folder.path("c.json"), "GPUPOOL_POOL_SIZE=4GiB"}.get());
  CHECK(only_message(missing) == "c.json: does not exist; using no file");
  CHECK(missing.options.pool.size.bytes == 4_GiB);
  CHECK(only_message(load_file(folder.path(""))).find("is a directory") != std::string::npos);
}

TEST_CASE("one bad value costs only itself", "[config][case-38]") {
  const Loaded loaded = load_text(R"({"pool": {"size": "4X", "max": "16GiB"}})");
  CHECK(loaded.diagnostics.size() == 1);
  CHECK(loaded.options.pool.max.bytes == 16_GiB);
}

TEST_CASE("a file full of faults is cut off", "[config][case-38]") {
  std::string text = "{";
  for (int i = 0; i < 1000; ++i) text += "\"x" + std::to_string(i) + "\": 1,";
  const Loaded loaded = load_text(text + "\"pool.size\": \"8GiB\"}");
  CHECK(loaded.diagnostics.size() == kMostDiagnostics + 1);
  CHECK(loaded.options.pool.size.bytes == 8_GiB);
}

TEST_CASE("devices override the pool's options", "[config]") {
  const Folder folder;
  const std::string path = folder.write(
      "c.json",
      R"({"pool": {"max": "30GiB"}, "devices": {"0": {"pool": {"size": "8GiB"}}, "GPU-ab": {"pool.size": "9GiB"}}})");
  const Environment environment{"GPUPOOL_CONFIG=" + path, "GPUPOOL_POOL_SIZE=1GiB",
                                R"(GPUPOOL_DEVICES={"1": {"pool": {"size": "7GiB"}}})"};
  const Loaded loaded = load(environment.get());
  CAPTURE(messages(loaded.diagnostics));
  REQUIRE(loaded.diagnostics.empty());
  const auto size = [&loaded](int ordinal, std::string_view uuid) {
    const PoolOptions pool = pool_options_for(loaded.options, ordinal, uuid);
    CHECK(pool.max.bytes == 30_GiB);
    return pool.size.bytes;
  };
  CHECK(size(0, "GPU-00") == 8_GiB);
  CHECK(size(0, "GPU-AB") == 9_GiB);
  CHECK(size(1, "") == 7_GiB);
  CHECK(size(2, "MIG-1") == 1_GiB);
}

TEST_CASE("faulty overrides are named in full", "[config][case-38]") {
  CHECK(only_message(load_text(R"({"devices": {"0": {"pool": {"sise": 1}}}})"))
            .ends_with("devices.0.pool.sise: is no option and is ignored; did you mean devices.0.pool.size?"));
  CHECK(only_message(load_text(R"({"devices": {"first": {"pool": {"size": "1GiB"}}}})"))
            .ends_with("\"first\" is neither a CUDA ordinal nor a UUID (GPU-... or MIG-...) and is ignored"));
  CHECK(only_message(load_text(R"({"devices": {"0": {"pool": {"size": "4X"}}}})"))
            .ends_with("using what holds for the other devices"));
  CHECK(load_text(R"({"devices": {"0": {"log": {"level": "info"}}}})").diagnostics.size() == 1);
  CHECK(load_text(R"({"devices": {"00": {"pool.size": "1GiB"}}})").diagnostics.size() == 1);
  CHECK(load_text(R"({"devices": 4})").diagnostics.size() == 1);
  CHECK(load(Environment{"GPUPOOL_DEVICES=0"}.get()).diagnostics.size() == 1);
}

TEST_CASE("a layer on top, as from a command line", "[config]") {
  Loaded loaded = load(Environment{"GPUPOOL_POOL_HANDLE=2MiB"}.get());
  apply_setting(loaded, {SourceKind::environment, "--set", 0, 0}, "pool.handle", "32MiB");
  CHECK(loaded.options.pool.handle.bytes == 32_MiB);
  CHECK(to_text(source_of(loaded, "pool.handle")) == "--set");
  apply_setting(loaded, {SourceKind::environment, "--set", 0, 0}, "pool.handel", "32MiB");
  CHECK(only_message(loaded) == "--set: pool.handel: is no option and is ignored; did you mean pool.handle?");
}

TEST_CASE("numbers are read the same in every locale", "[config][case-36]") {
  const std::string before = setlocale(LC_NUMERIC, nullptr);
  bool comma = false;
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"})
    comma = comma || setlocale(LC_NUMERIC, name) != nullptr;
  const Loaded loaded = load_text(R"({"pool": {"size": 0.92, "max": 0.5}})");
  setlocale(LC_NUMERIC, before.c_str());
  INFO((comma ? "with a decimal comma" : "no locale with a decimal comma is installed"));
  CHECK(loaded.diagnostics.empty());
  CHECK(loaded.options.pool.size.share.parts_per_billion == 920'000'000);
  CHECK(loaded.options.pool.max.share.parts_per_billion == 500'000'000);
}

TEST_CASE("the examples load without a message", "[config]") {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator{GPUPOOL_SOURCE_DIR "/config/examples"}) {
    // A checkout may belong to whoever made it; a copy belongs to us.
    const Loaded loaded = load_text(test::read_text(entry.path().string()));
    CAPTURE(entry.path().string(), messages(loaded.diagnostics));
    CHECK(loaded.diagnostics.empty());
    const auto from_file = [](const Source& source) { return source.kind == SourceKind::file; };
    CHECK(std::ranges::any_of(loaded.sources, from_file));
    ++count;
  }
  CHECK(count >= 4);
}
