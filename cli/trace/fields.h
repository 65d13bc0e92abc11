// The fields of a line that commas separate, and numbers in them. Views into the line; no locale.
#pragma once
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpupool::cli {

inline std::string_view without_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

inline void split_fields(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  for (;;) {
    const std::size_t comma = line.find(',');
    fields.push_back(without_blanks(line.substr(0, comma)));
    if (comma == std::string_view::npos) return;
    line.remove_prefix(comma + 1);
  }
}

/// All of the text, or nothing. Base 16 takes a 0x in front.
inline std::optional<std::uint64_t> number_in(std::string_view text, int base = 10) {
  if (base == 16 && (text.starts_with("0x") || text.starts_with("0X"))) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Nanoseconds since midnight of a time like 14:05:59.123456 (a colon may stand for the point; up to 9 digits behind
/// it).
inline std::optional<std::uint64_t> time_of_day_in(std::string_view text) {
  std::uint64_t ns = 0;
  std::uint64_t unit = 3'600'000'000'000;
  for (const char* separator : {":", ":", ".:", ""}) {
    const std::size_t end = std::min(text.find_first_of(separator), text.size());
    std::string digits{text.substr(0, end)};
    if (unit == 0) {  // behind the point
      if (digits.size() > 9) return std::nullopt;
      digits.resize(9, '0');
      unit = 1;
    }
    const std::optional<std::uint64_t> number = number_in(digits);
    if (!number || *number > 999'999'999) return std::nullopt;
    ns += *number * unit;
    if (end == text.size()) return unit > 1'000'000'000 ? std::nullopt : std::optional{ns};
    text.remove_prefix(end + 1);
    unit = unit == 1'000'000'000 ? 0 : unit / 60;
  }
  return std::nullopt;
}

}  // namespace gpupool::cli
