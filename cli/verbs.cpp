// See verbs.h.
#include "cli/verbs.h"

#include "cli/console.h"

namespace gpupool::cli {
namespace {

#define VERB(verb, ...) constexpr VerbOption verb##_options[] = {
#define OPTION(name, kind, placeholder, key, sentence) {name, OptionKind::kind, placeholder, key, sentence},
#define VERB_END(verb) \
  }                    \
  ;
#include "cli/verbs.def"
#undef VERB
#undef OPTION
#undef VERB_END

constexpr Verb kVerbs[] = {
#define VERB(name, shown, operands, program, sentence) \
  {#name, shown, Operands::operands, Program::program, sentence, name##_options, name##_verb},
#define OPTION(...)
#define VERB_END(name)
#include "cli/verbs.def"
#undef VERB
#undef OPTION
#undef VERB_END
};

constexpr ExitRow kExits[] = {
#define EXIT(name, number, sentence) {Exit::name, sentence},
#define EXIT_OF(...)
#include "cli/exits.def"
#undef EXIT
#undef EXIT_OF
};

struct ExitOfVerb {
  std::string_view verb;
  ExitRow row;
};
constexpr ExitOfVerb kExitsOfVerbs[] = {
#define EXIT(...)
#define EXIT_OF(verb, name, sentence) {#verb, {Exit::name, sentence}},
#include "cli/exits.def"
#undef EXIT
#undef EXIT_OF
};

}  // namespace

std::span<const Verb> verbs() { return kVerbs; }
std::span<const ExitRow> exit_rows() { return kExits; }

std::vector<ExitRow> exit_rows_of(std::string_view verb) {
  std::vector<ExitRow> rows;
  for (const ExitOfVerb& one : kExitsOfVerbs) {
    if (one.verb == verb) rows.push_back(one.row);
  }
  return rows;
}

const Verb* find_verb(std::string_view name) {
  for (const Verb& verb : kVerbs) {
    if (verb.name == name) return &verb;
  }
  return nullptr;
}

void Arguments::allow_one_of(std::initializer_list<std::string_view> those) const {
  std::string_view given;
  for (const std::string_view option : those) {
    if (!has(option)) continue;
    if (!given.empty())
      throw Problem(Exit::usage, std::string{given} + " and " + std::string{option} + ": one of them at a time");
    given = option;
  }
}

std::string Arguments::value(std::string_view option) const {
  const auto found = options.find(option);
  return found == options.end() ? std::string{} : found->second.back();
}

std::vector<std::string> Arguments::values(std::string_view option) const {
  const auto found = options.find(option);
  return found == options.end() ? std::vector<std::string>{} : found->second;
}

}  // namespace gpupool::cli
