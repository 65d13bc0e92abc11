// options.def as data: one row for each option, in the order of the table.
// Constant, shared by everything that walks over options: loading, schema, description, documents.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "config/options.h"

namespace gpupool {

// How a value is written; decides which JSON types may carry it.
enum class ValueKind { size, size_or_share, growth, handle, on_off, duration, text, names, choice };

struct OptionRow {
  std::string_view group;
  std::string_view name;
  std::string_view key;  // group.name
  ValueKind kind;
  std::string_view default_text;
  Limits range;
  std::string_view unit;
  std::string_view sentence;
  std::string_view origin;
  std::span<const Choice> choices;  // empty unless kind is choice
  // Writes the option if the text is a value of it; else leaves it as it was.
  Fault (*set)(Options& options, std::string_view text);
  // The value as a text that set() takes.
  std::string (*get)(const Options& options);
};

struct OptionGroup {
  std::string_view name;
  std::string_view sentence;
};

std::span<const OptionRow> option_rows();
std::span<const OptionGroup> option_groups();

// The rows of overrides for one device: `devices.<ordinal or UUID>.pool.<name>`.
inline constexpr std::string_view kDevicesKey = "devices";
inline constexpr std::string_view kDevicesSentence =
    "Options of the group pool for single devices, keyed by CUDA ordinal or by UUID as nvidia-smi -L prints it.";

const OptionRow* find_option(std::string_view key);
// pool.size is GPUPOOL_POOL_SIZE.
std::string environment_name(std::string_view key);
// The candidate fewest edits away from `name` regardless of case; empty if none is near.
std::string_view nearest_name(std::string_view name, std::span<const std::string> candidates);
// "best_fit, auto_growth, passthrough, off"
std::string choices_text(std::span<const Choice> choices);
// "2MiB to 64GiB, a multiple of 2MiB"; empty for a row without limits.
std::string range_text(const OptionRow& row);

}  // namespace gpupool
