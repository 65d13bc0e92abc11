// A JSON object as a flat list of settings: {"pool": {"size": "8GiB"}} and {"pool.size": "8GiB"} both give pool.size.
// Knows nothing of options. An object without members is a setting, too, so that its name can be judged. A key that
// begins with $ is a comment and is left out with its value. Each setting carries the place of its key; a fault of
// syntax is one fault, and no settings. Nesting is bounded, and so is the text (file.h). Throws nothing but
// std::bad_alloc.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace gpupool {

enum class JsonType { null, boolean, number, string, list_of_strings, empty_object, other };

struct JsonSetting {
  std::string key;   // path joined by points
  std::string text;  // scalars as written, lists joined by commas
  JsonType type = JsonType::other;
  int line = 0;
  int column = 0;
};

struct JsonFault {
  std::string key;
  std::string problem;
  int line = 0;
  int column = 0;
};

struct JsonSettings {
  std::vector<JsonSetting> settings;
  std::vector<JsonFault> duplicates;  // the later one counts
  std::vector<JsonFault> syntax;      // at most one; then settings is empty
};

inline constexpr std::size_t kDeepestNesting = 16;
inline constexpr char kCommentMark = '$';

JsonSettings read_json(std::string_view text);

}  // namespace gpupool
