// From value to text: exact texts that parse back to the same value, rounded ones for people, and safe quoting.
// Pure functions, no locale.
#pragma once
#include <string>
#include <string_view>

#include "config/options.h"

namespace gpupool {

std::string to_text(Bytes bytes);
std::string to_text(Share share);
std::string to_text(SizeOrShare size);
std::string to_text(GrowthStep growth);
std::string to_text(HandleSize handle);
std::string to_text(bool on);
std::string to_text(Milliseconds duration);
std::string to_text(const std::string& text);
std::string to_text(const NameList& names);

template <IsChoice Enum>
std::string to_text(Enum value) {
  return std::string{choice_text(value)};
}

// "73.6 GiB": one decimal, rounded down, for messages.
std::string readable(Bytes bytes);

// Printable ASCII on one line: control characters, quotes, backslashes and bytes above 0x7e become \n, \t, \", \\ or
// \xNN. Longer texts are cut after `most` bytes and end in "...".
inline constexpr std::size_t kMostQuoted = 120;
std::string escaped(std::string_view text, std::size_t most = kMostQuoted);
std::string in_quotes(std::string_view text);

}  // namespace gpupool
