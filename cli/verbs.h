// verbs.def and exits.def as data, and what the parser makes of a command line.
// Constant tables; Arguments is a value. A verb is a function from Arguments to an exit status, in the file of its
// name; what goes wrong on the way is thrown as a Problem (console.h) and told by main().
#pragma once
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpupool::cli {

enum class Exit : int {
#define EXIT(name, number, sentence) name = number,
#define EXIT_OF(...)
#include "cli/exits.def"
#undef EXIT
#undef EXIT_OF
};

struct ExitRow {
  Exit status;
  std::string_view sentence;
};
std::span<const ExitRow> exit_rows();
/// What statuses mean of one verb, where there is more to say.
std::vector<ExitRow> exit_rows_of(std::string_view verb);

enum class OptionKind { flag, value, list };
enum class Operands { none, at_most_one, one, some, any };
enum class Program { never, optional, required };

struct VerbOption {
  std::string_view name;
  OptionKind kind;
  std::string_view placeholder;
  std::string_view key;  // of options.def; empty where the verb itself uses the value
  std::string_view sentence;
};

struct Arguments {
  std::map<std::string, std::vector<std::string>, std::less<>> options;  // by name; a flag has one empty text
  std::vector<std::string> operands;
  std::vector<std::string> program;  // what follows "--"

  bool has(std::string_view option) const { return options.contains(option); }
  /// The last value given; empty without one.
  std::string value(std::string_view option) const;
  /// All values given, in order.
  std::vector<std::string> values(std::string_view option) const;
  /// Of options that each ask for another work: a Problem when more than one was given.
  void allow_one_of(std::initializer_list<std::string_view> options) const;
};

struct Verb {
  std::string_view name;
  std::string_view operands_shown;
  Operands operands;
  Program program;
  std::string_view sentence;
  std::span<const VerbOption> options;
  Exit (*act)(const Arguments&);
};

std::span<const Verb> verbs();
const Verb* find_verb(std::string_view name);

#define VERB(name, ...) Exit name##_verb(const Arguments& arguments);
#define OPTION(...)
#define VERB_END(name)
#include "cli/verbs.def"
#undef VERB
#undef OPTION
#undef VERB_END

}  // namespace gpupool::cli
