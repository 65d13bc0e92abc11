// From text to value: the one grammar for JSON, environment, command line and the defaults of options.def.
// Everything here is constexpr and without locale, so a default that does not parse is a compile error.
// A text is a value, or it is a named Fault; there is no third way, and out is written only on Fault::none.
// Surrounding blanks (space, tab, carriage return, newline) are dropped; numbers are decimal, leading zeros mean
// nothing.
#pragma once
#include <chrono>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/bytes.h"
#include "config/choices.h"

namespace gpupool {

using Milliseconds = std::chrono::milliseconds;
using NameList = std::vector<std::string>;

enum class Fault : std::uint8_t {
  none,
#define GPUPOOL_FAULT(name, text) name,
#include "config/faults.def"
#undef GPUPOOL_FAULT
};

// The sentence's end: `"4X"` + " " + fault_text(...).
std::string_view fault_text(Fault fault);

// What a number may be, in the type's own unit (bytes, parts per billion, milliseconds). Shares are not measured in
// bytes and pass a size's range.
struct Limits {
  std::uint64_t least = 0;
  std::uint64_t most = UINT64_MAX;
  std::uint64_t multiple = 1;

  constexpr bool contains(std::uint64_t value) const {
    return value >= least && value <= most && value % multiple == 0;
  }
};

namespace grammar {

inline constexpr Bytes kLargest = Bytes{1} << 60;
inline constexpr std::uint64_t kBillion = 1'000'000'000;
// A bare number below this is far more likely a percentage, a fraction or a count of MiB than bytes.
inline constexpr Bytes kLeastBareBytes = 1_KiB;

constexpr bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

constexpr std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

constexpr bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (lower(a[i]) != lower(b[i])) return false;
  return true;
}

// "1.50 GiB" is whole 1, billionths 500000000, has_point, unit "GiB".
struct Quantity {
  std::uint64_t whole = 0;
  std::uint64_t billionths = 0;
  bool has_point = false;
  std::string_view unit;
  Fault fault = Fault::none;

  constexpr bool zero() const { return whole == 0 && billionths == 0; }
  constexpr unsigned __int128 times(std::uint64_t factor) const {
    return static_cast<unsigned __int128>(whole) * factor +
           static_cast<unsigned __int128>(billionths) * factor / kBillion;
  }
  // Whether times(factor) loses nothing.
  constexpr bool exact(std::uint64_t factor) const {
    return static_cast<unsigned __int128>(billionths) * factor % kBillion == 0;
  }
};

constexpr Quantity scan(std::string_view text) {
  Quantity q;
  const auto fail = [&q](Fault fault) {
    q.fault = fault;
    return q;
  };
  text = trim(text);
  if (text.empty()) return fail(Fault::empty);
  if (text.front() == '-') return fail(Fault::negative);
  if (!is_digit(text.front())) return fail(Fault::not_a_number);
  std::size_t at = 0;
  for (; at < text.size() && is_digit(text[at]); ++at) {
    q.whole = q.whole * 10 + static_cast<std::uint64_t>(text[at] - '0');
    if (q.whole > kLargest) return fail(Fault::too_large);
  }
  if (at < text.size() && text[at] == ',') return fail(Fault::decimal_comma);
  if (at < text.size() && text[at] == '.') {
    q.has_point = true;
    const std::size_t first = ++at;
    std::uint64_t place = kBillion;
    for (; at < text.size() && is_digit(text[at]); ++at) {
      if (place == 1 && text[at] != '0') return fail(Fault::too_precise);
      if (place == 1) continue;
      place /= 10;
      q.billionths += place * static_cast<std::uint64_t>(text[at] - '0');
    }
    if (at == first) return fail(Fault::not_a_number);
  }
  q.unit = trim(text.substr(at));
  const bool signed_exponent = q.unit.size() > 1 && (q.unit[1] == '-' || q.unit[1] == '+');
  if (q.unit.size() > 1 && lower(q.unit[0]) == 'e' && (is_digit(q.unit[1]) || signed_exponent)) {
    return fail(Fault::exponent);
  }
  return q;
}

// Bytes of one unit; 0 for no such unit. With an i a power of 1024, without one a power of 1000 (IEC 80000-13).
constexpr Bytes unit_bytes(std::string_view unit) {
  if (equal_ignoring_case(unit, "B")) return 1;
  if (unit.empty() || unit.size() > 3) return 0;
  const std::string_view tail = unit.substr(1);
  const bool binary = equal_ignoring_case(tail, "i") || equal_ignoring_case(tail, "iB");
  if (!binary && !tail.empty() && !equal_ignoring_case(tail, "B")) return 0;
  const Bytes base = binary ? 1024 : 1000;
  Bytes bytes = 1;
  for (const char prefix : std::string_view{"kmgt"}) {
    bytes *= base;
    if (lower(unit.front()) == prefix) return bytes;
  }
  return 0;
}

constexpr Fault to_share(const Quantity& q, Share& out) {
  const bool percent = q.unit == "%";
  if (!percent && !q.unit.empty()) return Fault::not_a_share;
  const std::uint64_t whole = percent ? 100 : 1;
  if (q.whole > whole || (q.whole == whole && q.billionths != 0)) return Fault::above_whole;
  if (!q.exact(Share::kWhole / whole)) return Fault::too_precise;
  const auto parts = static_cast<std::uint32_t>(q.times(Share::kWhole / whole));
  if (parts < Share::kWhole / 100) return Fault::below_percent;
  out.parts_per_billion = parts;
  return Fault::none;
}

constexpr Fault to_bytes(const Quantity& q, Bytes& out) {
  if (q.unit == "%") return Fault::no_share_here;
  if (q.unit.empty()) {
    if (q.has_point) return Fault::no_share_here;
    if (q.whole != 0 && q.whole < kLeastBareBytes) return Fault::no_unit;
    out = q.whole;
    return Fault::none;
  }
  const Bytes unit = unit_bytes(q.unit);
  if (unit == 0) return Fault::unknown_unit;
  const unsigned __int128 bytes = q.times(unit);
  if (bytes > kLargest) return Fault::too_large;
  out = static_cast<Bytes>(bytes);
  return Fault::none;
}

}  // namespace grammar

// 4096, 512MiB, 1.5GiB, 8GB; part bytes are dropped.
constexpr Fault parse(std::string_view text, Bytes& out) {
  const grammar::Quantity q = grammar::scan(text);
  return q.fault != Fault::none ? q.fault : grammar::to_bytes(q, out);
}

// 92%, 0.92, 1.0.
constexpr Fault parse(std::string_view text, Share& out) {
  const grammar::Quantity q = grammar::scan(text);
  return q.fault != Fault::none ? q.fault : grammar::to_share(q, out);
}

// Either of the two; a number with a point and no unit is a share, one without is bytes.
constexpr Fault parse(std::string_view text, SizeOrShare& out) {
  const grammar::Quantity q = grammar::scan(text);
  if (q.fault != Fault::none) return q.fault;
  SizeOrShare value;
  const bool share = q.unit == "%" || (q.unit.empty() && q.has_point);
  const Fault fault = share ? grammar::to_share(q, value.share) : grammar::to_bytes(q, value.bytes);
  if (fault == Fault::none) out = value;
  return fault;
}

// A size, or a factor: 1.5x.
constexpr Fault parse(std::string_view text, GrowthStep& out) {
  const grammar::Quantity q = grammar::scan(text);
  if (q.fault != Fault::none) return q.fault;
  GrowthStep value;
  if (grammar::equal_ignoring_case(q.unit, "x")) {
    const unsigned __int128 thousandths = q.times(1000);
    if (!q.exact(1000) || thousandths <= 1000 || thousandths > 16000) return Fault::bad_factor;
    value.factor_thousandths = static_cast<std::uint32_t>(thousandths);
  } else if (const Fault fault = grammar::to_bytes(q, value.step); fault != Fault::none) {
    return fault;
  }
  out = value;
  return Fault::none;
}

constexpr Fault parse(std::string_view text, HandleSize& out) {
  if (grammar::trim(text) == "auto") {
    out = {};
    return Fault::none;
  }
  Bytes bytes = 0;
  const Fault fault = parse(text, bytes);
  if (fault != Fault::none) return fault;
  if (bytes == 0) return Fault::out_of_range;
  out.bytes = bytes;
  return Fault::none;
}

constexpr Fault parse(std::string_view text, bool& out) {
  text = grammar::trim(text);
  const bool on = text == "on" || text == "true" || text == "1";
  const bool off = text == "off" || text == "false" || text == "0";
  if (!on && !off) return text.empty() ? Fault::empty : Fault::not_on_off;
  out = on;
  return Fault::none;
}

constexpr Fault parse(std::string_view text, Milliseconds& out) {
  const grammar::Quantity q = grammar::scan(text);
  if (q.fault != Fault::none) return q.fault == Fault::too_large ? Fault::bad_duration : q.fault;
  const std::uint64_t unit_ms = q.unit == "ms" ? 1 : q.unit == "s" ? 1000 : q.unit == "min" ? 60'000 : 0;
  constexpr std::uint64_t kLongestMs = 1'000'000'000'000;
  if (unit_ms == 0 || !q.exact(unit_ms) || q.times(unit_ms) > kLongestMs) return Fault::bad_duration;
  out = Milliseconds{static_cast<Milliseconds::rep>(q.times(unit_ms))};
  return Fault::none;
}

// Names are exact: wrong case is refused, and the message names the right one.
template <IsChoice Enum>
constexpr Fault parse(std::string_view text, Enum& out) {
  text = grammar::trim(text);
  if (text.empty()) return Fault::empty;
  const std::span<const Choice> choices = choices_of<Enum>();
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (choices[i].text != text) continue;
    out = static_cast<Enum>(i);
    return Fault::none;
  }
  return Fault::not_a_choice;
}

// Paths are taken as they are, blanks included; empty means unset.
constexpr Fault parse(std::string_view text, std::string& out) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return Fault::control_character;
  out = text;
  return Fault::none;
}

// Comma-separated; blanks around a name and empty names are dropped.
constexpr Fault parse(std::string_view text, NameList& out) {
  NameList names;
  for (const char c : grammar::trim(text))
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return Fault::control_character;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view name = grammar::trim(text.substr(0, comma));
    if (!name.empty()) names.emplace_back(name);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  out = names;
  return Fault::none;
}

// The default of an option. Evaluated by the compiler, so that a row whose default does not parse is a compile error...
template <class T>
consteval T default_of(std::string_view text) {
  T value{};
  if (parse(text, value) != Fault::none) throw "a default of options.def does not parse";
  return value;
}

// ...but for the two types that own memory, which take every text without control characters.
template <class T>
requires std::same_as<T, std::string> || std::same_as<T, NameList> T default_of(std::string_view text) {
  T value;
  parse(text, value);
  return value;
}

}  // namespace gpupool
