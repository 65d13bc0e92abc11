// Places, shapes and faults of JSON.
#include "config/json_reader.h"

#include "tests/catch.h"

using namespace gpupool;

namespace {

std::string places(const JsonSettings& read) {
  std::string text;
  for (const JsonSetting& s : read.settings) {
    text += s.key + "=" + s.text + "@" + std::to_string(s.line) + ":" + std::to_string(s.column) + " ";
  }
  return text;
}

struct Fault1 {
  std::string_view text;
  int line;
  int column;
};

}  // namespace

TEST_CASE("settings carry the place of their key", "[config][case-38]") {
  const JsonSettings read =
      read_json("{\n  \"pool\": {\"size\": \"8GiB\",\n    \"max\" : 0.92 },\n\"stats.summary\":true}");
  CHECK(read.syntax.empty());
  CHECK(places(read) == "pool.size=8GiB@2:12 pool.max=0.92@3:5 stats.summary=true@4:1 ");
  CHECK(read.settings[0].type == JsonType::string);
  CHECK(read.settings[1].type == JsonType::number);
  CHECK(read.settings[2].type == JsonType::boolean);
}

TEST_CASE("places count characters, and escapes do not disturb them", "[config][case-38]") {
  const JsonSettings read = read_json("\xef\xbb\xbf{ \"\\\"a\\\\\": 1, \"\xc3\xa4\": [\"x\\\"\"], \"c\": null }");
  CHECK(places(read) == "\"a\\=1@1:3 \xc3\xa4=x\"@1:15 c=null@1:29 ");
}

TEST_CASE("keys that begin with $ are comments, with all that is in them", "[config]") {
  const JsonSettings read = read_json(
      R"({"$a": "x", "$a": {"pool": {"size": 1}, "b": [{"c": 2}]}, "pool": {"$size": [1, ["y"]], "size": 3, "$": null},
"$pool.max": 4, "a$b": 5})");
  CHECK(places(read) == "pool.size=3@1:89 a$b=5@2:17 ");
  CHECK(read.duplicates.empty());
  CHECK(read_json(R"({"$a": nothing})").syntax.size() == 1);
  CHECK(read_json(R"({"$a": {}, "b": 1, "b": 2})").duplicates.size() == 1);
}

TEST_CASE("lists of strings are joined, other lists are not settings of any type", "[config]") {
  const JsonSettings read =
      read_json(R"({"a": ["x", "y"], "b": [], "c": [1], "d": [["x"]], "e": ["x,y"], "f": [{"g": "x"}], "h": "i"})");
  REQUIRE(read.settings.size() == 7);
  CHECK(read.settings[0].text == "x,y");
  CHECK(read.settings[0].type == JsonType::list_of_strings);
  CHECK(read.settings[1].type == JsonType::list_of_strings);
  for (int i = 2; i < 6; ++i) CHECK(read.settings[static_cast<std::size_t>(i)].type == JsonType::other);
  CHECK(read.settings[6].key == "h");
}

TEST_CASE("numbers keep what was written", "[config][case-35]") {
  const JsonSettings read =
      read_json(R"({"a": 1.50, "b": -1, "c": 99999999999999999999, "d": 1e9, "e": 18446744073709551615})");
  REQUIRE(read.settings.size() == 5);
  CHECK(read.settings[0].text == "1.50");
  CHECK(read.settings[1].text == "-1");
  CHECK(read.settings[2].text == "99999999999999999999");
  CHECK(read.settings[3].text == "1e9");
  CHECK(read.settings[4].text == "18446744073709551615");
}

TEST_CASE("a key given twice is reported where it is given again", "[config][case-38]") {
  const JsonSettings flat = read_json("{\"a\": 1,\n \"a\": 2}");
  REQUIRE(flat.duplicates.size() == 1);
  CHECK(flat.duplicates[0].key == "a");
  CHECK(flat.duplicates[0].line == 2);
  CHECK(flat.duplicates[0].column == 2);
  CHECK(flat.settings.back().text == "2");

  const JsonSettings dotted = read_json(R"({"p": {"a": 1}, "p.a": 2})");
  REQUIRE(dotted.duplicates.size() == 1);
  CHECK(dotted.duplicates[0].key == "p.a");

  const JsonSettings group = read_json(R"({"p": {"a": 1}, "p": {"a": 2, "b": {"c": 1}}, "q": 1, "q": 2})");
  REQUIRE(group.duplicates.size() == 2);
  CHECK(group.duplicates[0].key == "p");
  CHECK(group.duplicates[1].key == "q");
}

TEST_CASE("a fault of syntax is one fault with its place, and no settings", "[config][case-38]") {
  const std::string deep = "{\"a\":" + std::string(100'000, '[');
  const std::string deeper_objects = [] {
    std::string text;
    for (int i = 0; i < 50'000; ++i) text += "{\"a\":";
    return text;
  }();
  const Fault1 faults[] = {
      {"", 1, 1},
      {" \n\t", 1, 1},
      {"{\"a\": 1,\n}", 2, 1},          // trailing comma
      {"{\"a\": 1, // why\n}", 1, 10},  // comment
      {"{\n\"a\": TRUE}", 2, 6},        // no literal
      {"{\"a\": 1} x", 1, 10},          // something behind it
      {"{\"a\": 1", 1, 8},              // cut off
      {"{\"a\": \"\xff\"}", 1, 8},      // no UTF-8
      {"[1, 2]", 1, 1},
      {"4", 1, 1},
      {"\"pool\"", 1, 1},
      {"{'a': 1}", 1, 2},
      {"{\"a\": 1e999}", 1, 11},
      {deep, 1, 21},
      {deeper_objects, 1, 81},
  };
  for (const Fault1& fault : faults) {
    CAPTURE(fault.text.substr(0, 40));
    const JsonSettings read = read_json(fault.text);
    REQUIRE(read.syntax.size() == 1);
    CHECK(read.syntax[0].line == fault.line);
    CHECK(read.syntax[0].column == fault.column);
    CHECK_FALSE(read.syntax[0].problem.empty());
    CHECK(read.settings.empty());
    CHECK(read.duplicates.empty());
  }
}
