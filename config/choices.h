// Enums of choices.def and the names of their values.
// Constant data only; choices_of<Enum>() lists a choice's names in the order of the enumerators.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace gpupool {

struct Choice {
  std::string_view text;
  std::string_view sentence;
};

#define GPUPOOL_CHOICES(Enum) enum class Enum : std::uint8_t {
#define GPUPOOL_CHOICE(enumerator, text, sentence) enumerator,
#define GPUPOOL_CHOICES_END(Enum) \
  }                               \
  ;
#include "config/choices.def"
#undef GPUPOOL_CHOICES
#undef GPUPOOL_CHOICE
#undef GPUPOOL_CHOICES_END

template <class Enum>
struct ChoiceNames;

#define GPUPOOL_CHOICES(Enum) \
  template <>                 \
  struct ChoiceNames<Enum> {  \
    static constexpr Choice values[] = {
#define GPUPOOL_CHOICE(enumerator, text, sentence) {text, sentence},
#define GPUPOOL_CHOICES_END(Enum) \
  }                               \
  ;                               \
  }                               \
  ;
#include "config/choices.def"
#undef GPUPOOL_CHOICES
#undef GPUPOOL_CHOICE
#undef GPUPOOL_CHOICES_END

template <class Enum>
concept IsChoice = requires {
  ChoiceNames<Enum>::values;
};

template <IsChoice Enum>
constexpr std::span<const Choice> choices_of() {
  return ChoiceNames<Enum>::values;
}

template <IsChoice Enum>
constexpr std::string_view choice_text(Enum value) {
  return ChoiceNames<Enum>::values[static_cast<std::size_t>(value)].text;
}

}  // namespace gpupool
