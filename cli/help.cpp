// `gpupool help`, and the texts of --help.
#include "cli/console.h"
#include "cli/manual.h"
#include "config/table.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

struct Format {
  std::string_view name;
  std::string (*text)();
};
constexpr Format kFormats[] = {{"text", command_help},    {"markdown", manual_markdown}, {"man", manual_man},
                               {"bash", completion_bash}, {"zsh", completion_zsh},       {"fish", completion_fish}};

std::string shown(const VerbOption& option) {
  return std::string{option.name} + (option.placeholder.empty() ? "" : " " + std::string{option.placeholder});
}

}  // namespace

std::string version() { return GPUPOOL_VERSION; }

std::string usage(const Verb& verb) {
  std::string text = "gpupool " + std::string{verb.name};
  if (!verb.options.empty()) text += " [OPTION...]";
  if (!verb.operands_shown.empty()) text += " " + std::string{verb.operands_shown};
  switch (verb.program) {
    case Program::never:
      break;
    case Program::optional:
      text += " [-- PROGRAM...]";
      break;
    case Program::required:
      text += " -- PROGRAM...";
      break;
  }
  return text;
}

std::string command_help() {
  std::string text = "usage: gpupool VERB [OPTION...]\n\nOne best-fit pool of device memory for any CUDA program.\n\n";
  for (const Verb& verb : verbs()) text += "  " + padded(verb.name, 9) + std::string{verb.sentence} + "\n";
  text += "\n  " + padded("--help", 11) + "Explains the command; after a verb, the verb.\n  " +
          padded("--version", 11) + "Prints the version.\n";
  text += "\nexit status:\n";
  for (const ExitRow& row : exit_rows()) {
    text += "  " + padded(std::to_string(static_cast<int>(row.status)), 5) + std::string{row.sentence} + "\n";
  }
  return text;
}

std::string verb_help(const Verb& verb) {
  std::string text = "usage: " + usage(verb) + "\n\n" + std::string{verb.sentence} + "\n\n";
  std::size_t width = 6;
  for (const VerbOption& option : verb.options) width = std::max(width, shown(option).size());
  for (const VerbOption& option : verb.options) {
    text += "  " + padded(shown(option), width + 2) + std::string{option.sentence} + "\n";
  }
  text += "  " + padded("--help", width + 2) + "Explains the verb.\n";
  const std::vector<ExitRow> exits = exit_rows_of(verb.name);
  if (!exits.empty()) text += "\nexit status, beside what gpupool --help says:\n";
  for (const ExitRow& row : exits)
    text += "  " + padded(std::to_string(static_cast<int>(row.status)), width + 2) + std::string{row.sentence} + "\n";
  return text;
}

std::vector<std::string> help_formats() {
  std::vector<std::string> names;
  for (const Format& format : kFormats) names.emplace_back(format.name);
  return names;
}

Exit help_verb(const Arguments& arguments) {
  if (!arguments.operands.empty()) {
    if (arguments.has("--as")) throw Problem(Exit::usage, "--as: explains the whole command, not one verb");
    const Verb* verb = find_verb(arguments.operands.front());
    if (verb == nullptr) throw Problem(Exit::usage, in_quotes(arguments.operands.front()) + " is no verb");
    print(verb_help(*verb));
    return Exit::ok;
  }
  const std::string wanted = arguments.has("--as") ? arguments.value("--as") : "text";
  for (const Format& format : kFormats) {
    if (format.name != wanted) continue;
    print(format.text());
    return Exit::ok;
  }
  const std::string nearest{nearest_name(wanted, help_formats())};
  throw Problem(Exit::usage, "--as: " + in_quotes(wanted) + " is no format" +
                                 (nearest.empty() ? "" : "; did you mean " + nearest + "?"));
}

}  // namespace gpupool::cli
