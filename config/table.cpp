// See table.h.
#include "config/table.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "config/text.h"

namespace gpupool {
namespace {

bool within(const Limits& range, Bytes value) { return range.contains(value); }
bool within(const Limits& range, SizeOrShare value) { return value.is_share() || range.contains(value.bytes); }
bool within(const Limits& range, GrowthStep value) { return value.is_factor() || range.contains(value.step); }
bool within(const Limits& range, HandleSize value) { return value.automatic() || range.contains(value.bytes); }
bool within(const Limits& range, Milliseconds value) {
  return range.contains(static_cast<std::uint64_t>(value.count()));
}
bool within(const Limits&, bool) { return true; }
bool within(const Limits&, const std::string&) { return true; }
bool within(const Limits&, const NameList&) { return true; }
template <IsChoice Enum>
bool within(const Limits&, Enum) {
  return true;
}

template <class T>
Fault assign(T& option, std::string_view text, const Limits& range) {
  T value{};
  if (const Fault fault = parse(text, value); fault != Fault::none) return fault;
  if (!within(range, value)) return Fault::out_of_range;
  option = value;
  return Fault::none;
}

template <class T>
constexpr ValueKind kind_of() {
  if constexpr (IsChoice<T>) return ValueKind::choice;
  if constexpr (std::same_as<T, Bytes>) return ValueKind::size;
  if constexpr (std::same_as<T, SizeOrShare>) return ValueKind::size_or_share;
  if constexpr (std::same_as<T, GrowthStep>) return ValueKind::growth;
  if constexpr (std::same_as<T, HandleSize>) return ValueKind::handle;
  if constexpr (std::same_as<T, bool>) return ValueKind::on_off;
  if constexpr (std::same_as<T, Milliseconds>) return ValueKind::duration;
  if constexpr (std::same_as<T, std::string>) return ValueKind::text;
  if constexpr (std::same_as<T, NameList>) return ValueKind::names;
}

template <class T>
constexpr std::span<const Choice> choices_if_any() {
  if constexpr (IsChoice<T>) return choices_of<T>();
  return {};
}

constexpr OptionRow kRows[] = {
#define GPUPOOL_GROUP(...)
#define GPUPOOL_OPTION(group, Type, name, default_text, range, unit, sentence, origin)              \
  {#group,                                                                                          \
   #name,                                                                                           \
   #group "." #name,                                                                                \
   kind_of<Type>(),                                                                                 \
   default_text,                                                                                    \
   range,                                                                                           \
   unit,                                                                                            \
   sentence,                                                                                        \
   origin,                                                                                          \
   choices_if_any<Type>(),                                                                          \
   [](Options& options, std::string_view text) { return assign(options.group.name, text, range); }, \
   [](const Options& options) { return to_text(options.group.name); }},
#define GPUPOOL_GROUP_END(...)
#include "config/options.def"
#undef GPUPOOL_GROUP
#undef GPUPOOL_OPTION
#undef GPUPOOL_GROUP_END
};

constexpr OptionGroup kGroups[] = {
#define GPUPOOL_GROUP(group, Struct, sentence) {#group, sentence},
#define GPUPOOL_OPTION(...)
#define GPUPOOL_GROUP_END(...)
#include "config/options.def"
#undef GPUPOOL_GROUP
#undef GPUPOOL_OPTION
#undef GPUPOOL_GROUP_END
};

// Insertions, deletions, substitutions and swaps of neighbours between a and b (Damerau, 1964, each place edited once).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  const auto equal = [](char x, char y) { return grammar::lower(x) == grammar::lower(y); };
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({last[j] + (equal(a[i], b[j]) ? 0 : 1), row[j] + 1, last[j + 1] + 1});
      if (i > 0 && j > 0 && equal(a[i], b[j - 1]) && equal(a[i - 1], b[j]))
        row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
  }
  return row.back();
}

std::string limit_text(const OptionRow& row, std::uint64_t value) {
  if (row.kind == ValueKind::duration) return to_text(Milliseconds{static_cast<Milliseconds::rep>(value)});
  return to_text(Bytes{value});
}

}  // namespace

std::string_view fault_text(Fault fault) {
  switch (fault) {
    case Fault::none:
      return "is fine";
#define GPUPOOL_FAULT(name, text) \
  case Fault::name:               \
    return text;
#include "config/faults.def"
#undef GPUPOOL_FAULT
  }
  return {};
}

std::span<const OptionRow> option_rows() { return kRows; }
std::span<const OptionGroup> option_groups() { return kGroups; }

const OptionRow* find_option(std::string_view key) {
  const auto row = std::ranges::find(kRows, key, &OptionRow::key);
  return row == std::end(kRows) ? nullptr : &*row;
}

std::string environment_name(std::string_view key) {
  std::string name = "GPUPOOL_";
  for (const char c : key) name += c == '.' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return name;
}

std::string_view nearest_name(std::string_view name, std::span<const std::string> candidates) {
  constexpr std::size_t kLongestName = 64;
  if (name.size() > kLongestName) return {};
  std::string_view nearest;
  std::size_t least = name.size() / 4 + 2;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

std::string choices_text(std::span<const Choice> choices) {
  std::string text;
  for (const Choice& choice : choices) text += (text.empty() ? "" : ", ") + std::string{choice.text};
  return text;
}

std::string range_text(const OptionRow& row) {
  const Limits& range = row.range;
  if (row.kind == ValueKind::choice) return choices_text(row.choices);
  std::string text;
  if (range.least == 1 && range.most == UINT64_MAX) {
    text = "above 0";
  } else if (range.most != UINT64_MAX) {
    text = limit_text(row, range.least) + " to " + limit_text(row, range.most);
  } else if (range.least != 0) {
    text = "at least " + limit_text(row, range.least);
  }
  if (range.multiple != 1)
    text += (text.empty() ? "a multiple of " : ", a multiple of ") + limit_text(row, range.multiple);
  return text;
}

}  // namespace gpupool
