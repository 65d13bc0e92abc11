// See parse.h. The program behind "--" is cut off before CLI11 looks, so that no word of it is taken for ours.
#include "cli/parse.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/console.h"
#include "config/table.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

std::string perhaps(std::string_view word, const std::vector<std::string>& known) {
  const std::string_view nearest = nearest_name(word, known);
  return nearest.empty() ? "" : "; did you mean " + std::string{nearest} + "?";
}

std::vector<std::string> verb_names() {
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) names.emplace_back(verb.name);
  return names;
}

[[noreturn]] void wrong(std::string message, const Verb* verb) {
  const std::string place = verb ? "gpupool " + std::string{verb->name} + " --help" : "gpupool --help";
  throw Problem(Exit::usage, message + " (see " + place + ")");
}

// CLI11 knows an option's value by its type, people know it by the name that the table gives it.
std::string what_is_missing(const std::string& message, const Verb* verb) {
  const std::string name = message.substr(0, message.find(':'));
  if (verb == nullptr) return message;
  for (const VerbOption& option : verb->options) {
    if (option.name == name && message.ends_with(" missing"))
      return name + ": " + std::string{option.placeholder} + " is missing";
  }
  return message;
}

void check_operands(const Verb& verb, const Arguments& arguments) {
  const std::size_t count = arguments.operands.size();
  const auto extra = [&](std::size_t most) {
    if (count <= most) return;
    const std::string word = in_quotes(arguments.operands[most]);
    wrong(word + " is not expected" + (verb.program == Program::never ? "" : "; a program is written after --"), &verb);
  };
  switch (verb.operands) {
    case Operands::none:
      extra(0);
      break;
    case Operands::at_most_one:
      extra(1);
      break;
    case Operands::one:
      extra(1);
      [[fallthrough]];
    case Operands::some:
      if (count == 0) wrong(std::string{verb.operands_shown} + " is missing", &verb);
      break;
    case Operands::any:
      break;
  }
}

void check_program(const Verb& verb, const Arguments& arguments, bool separated) {
  const bool given = !arguments.program.empty();
  if (given && verb.program == Program::never) wrong("no program is run; leave out -- and what follows", &verb);
  if (separated && !given && verb.program != Program::never) wrong("no program follows --", &verb);
  if (!given && verb.program == Program::required) {
    wrong("the program is missing: gpupool " + std::string{verb.name} + " -- python train.py", &verb);
  }
}

}  // namespace

Parsed parse(std::vector<std::string> words) {
  Parsed parsed;
  const auto separator = std::find(words.begin(), words.end(), "--");
  const bool separated = separator != words.end();
  if (separated) parsed.arguments.program.assign(separator + 1, words.end());
  words.erase(separator, words.end());

  if (!words.empty() && !words.front().starts_with('-')) {
    parsed.verb = find_verb(words.front());
    if (parsed.verb == nullptr)
      wrong(in_quotes(words.front()) + " is no verb" + perhaps(words.front(), verb_names()), nullptr);
    words.erase(words.begin());
  }

  CLI::App app;
  app.set_help_flag();
  app.add_flag("-h,--help", parsed.help);
  std::map<std::string, std::vector<std::string>> values;
  std::map<std::string, bool> flags;
  std::vector<std::string> names{"--help"};
  if (parsed.verb == nullptr) {
    app.add_flag("--version", parsed.version);
    names.emplace_back("--version");
  } else {
    for (const VerbOption& option : parsed.verb->options) {
      const std::string name{option.name};
      names.push_back(name);
      if (option.kind == OptionKind::flag) {
        app.add_flag(name, flags[name]);
      } else {
        app.add_option(name, values[name])->expected(1)->take_all()->allow_extra_args(false);
      }
    }
    app.add_option("operands", parsed.arguments.operands);
  }
  std::reverse(words.begin(), words.end());  // as CLI11 takes a vector
  try {
    app.parse(words);
  } catch (const CLI::ExtrasError&) {
    const std::string word = app.remaining().empty() ? "" : app.remaining().front();
    wrong(in_quotes(word) + " is no option" + perhaps(word.substr(0, word.find('=')), names), parsed.verb);
  } catch (const CLI::ParseError& error) {
    wrong(what_is_missing(error.what(), parsed.verb), parsed.verb);
  }
  for (auto& [name, given] : values) {
    if (!given.empty()) parsed.arguments.options[name] = std::move(given);
  }
  for (const auto& [name, given] : flags) {
    if (given) parsed.arguments.options[name] = {""};
  }
  if (parsed.help) return parsed;
  if (parsed.verb == nullptr) {
    if (parsed.version) return parsed;
    wrong("a verb is missing", nullptr);
  }
  check_operands(*parsed.verb, parsed.arguments);
  check_program(*parsed.verb, parsed.arguments, separated);
  return parsed;
}

}  // namespace gpupool::cli
