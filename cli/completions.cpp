// See manual.h: completions for bash, zsh and fish. Verbs, options and, behind "--", the shell's own completion of
// programs.
#include "cli/manual.h"

#include <string_view>
#include <vector>

#include "config/table.h"

namespace gpupool::cli {
namespace {

std::string single_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string{"'\\''"} : std::string{c};
  return out + "'";
}

std::string verb_list() {
  std::string text;
  for (const Verb& verb : verbs()) text += (text.empty() ? "" : " ") + std::string{verb.name};
  return text;
}

std::string option_list(const Verb& verb) {
  std::string text = "--help";
  for (const VerbOption& option : verb.options) text += " " + std::string{option.name};
  return text;
}

// What may follow an option, or stand as an operand: files, words of ours, or what only the user knows.
struct Values {
  bool files = false;
  std::vector<std::string> words = {};
};

Values values_of(const VerbOption& option) {
  const std::string_view shown = option.placeholder;
  if (shown == "FILE" || shown == "PATH" || shown == "FOLDER") return {true};
  Values values;
  if (const OptionRow* row = find_option(option.key)) {
    for (const Choice& choice : row->choices) values.words.emplace_back(choice.text);
  } else if (shown == "KEY=VALUE") {
    for (const OptionRow& one : option_rows()) values.words.push_back(std::string{one.key} + "=");
  } else if (shown == "FORMAT") {
    values.words = help_formats();
  }
  return values;
}

Values operands_of(const Verb& verb) {
  if (verb.operands_shown == "[VERB]") {
    Values values;
    for (const Verb& one : verbs()) values.words.emplace_back(one.name);
    return values;
  }
  return {verb.operands_shown.find("TRACE") != std::string_view::npos ||
          verb.operands_shown.find("FILE") != std::string_view::npos};
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// In zsh's _arguments, brackets and colons of a description mean something.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string completion_bash() {
  std::string text = R"(# bash completion of gpupool
_gpupool() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then
      if ((i + 1 == COMP_CWORD)); then COMPREPLY=($(compgen -c -- "$word")); else COMPREPLY=($(compgen -f -- "$word")); fi
      return
    fi
  done
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W ")" +
                     verb_list() + R"( --help --version" -- "$word"))
    return
  fi
  local options= operands=
  case ${COMP_WORDS[1]} in
)";
  const auto operands_text = [](const Values& values) { return values.files ? "FILES" : joined(values.words); };
  for (const Verb& verb : verbs()) {
    text += "    " + std::string{verb.name} + ") options=\"" + option_list(verb) + "\" operands=\"" +
            operands_text(operands_of(verb)) + "\" ;;\n";
  }
  text += "  esac\n  if [[ $word != -* ]]; then\n    case \"${COMP_WORDS[1]} $before\" in\n";
  for (const Verb& verb : verbs()) {
    for (const VerbOption& option : verb.options) {
      if (option.kind == OptionKind::flag) continue;
      text += "      '" + std::string{verb.name} + " " + std::string{option.name} + "') options= operands=\"" +
              operands_text(values_of(option)) + "\" ;;\n";
    }
  }
  return text + R"(    esac
  fi
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  elif [[ $operands == FILES ]]; then
    COMPREPLY=($(compgen -f -- "$word"))
  else
    COMPREPLY=($(compgen -W "$operands" -- "$word"))
  fi
  [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
  return 0
}
complete -o filenames -F _gpupool gpupool
)";
}

std::string completion_zsh() {
  std::string text = "#compdef gpupool\n# zsh completion of gpupool\n_gpupool() {\n  local -a verbs=(\n";
  for (const Verb& verb : verbs()) {
    text += "    " + single_quoted(std::string{verb.name} + ":" + zsh_text(verb.sentence)) + "\n";
  }
  text +=
      "  )\n  if ((CURRENT == 2)); then\n    _describe verb verbs\n    return\n  fi\n"
      "  local separator=${words[(i)--]}\n  if ((separator < CURRENT)); then\n"
      "    shift $separator words\n    ((CURRENT -= separator))\n    _normal\n    return\n  fi\n"
      "  local verb=${words[2]}\n  shift words\n  ((CURRENT--))\n  case $verb in\n";
  const auto action = [](const Values& values) {
    if (values.files) return std::string{"_files"};
    if (values.words.empty()) return std::string{" "};  // something is expected, and nobody knows what
    const bool goes_on = values.words.front().ends_with('=');
    if (goes_on) return "compadd -S \"\" -- " + joined(values.words);
    return "(" + joined(values.words) + ")";
  };
  for (const Verb& verb : verbs()) {
    text += "    " + std::string{verb.name} + ") _arguments '--help[Explains the verb.]'";
    for (const VerbOption& option : verb.options) {
      std::string spec = (option.kind == OptionKind::list ? "*" : "") + std::string{option.name} + "[" +
                         zsh_text(option.sentence) + "]";
      if (option.kind != OptionKind::flag)
        spec += ":" + std::string{option.placeholder} + ":" + action(values_of(option));
      text += " " + single_quoted(spec);
    }
    if (!verb.operands_shown.empty())
      text += " " + single_quoted("*:" + zsh_text(verb.operands_shown) + ":" + action(operands_of(verb)));
    text += " ;;\n";
  }
  return text + "  esac\n}\n_gpupool \"$@\"\n";
}

std::string completion_fish() {
  std::string text = R"(# fish completion of gpupool
function __gpupool_program
  contains -- -- (commandline -opc)
end
function __gpupool_rest
  set -l words (commandline -opc) (commandline -ct | string collect --allow-empty)
  set -l separator (contains -i -- -- $words)
  set -l before $words[(math $separator + 1)..-2]
  complete -C (string join ' ' -- (string escape -- $before) $words[-1] | string collect --allow-empty)
end
complete -c gpupool -n __gpupool_program -x -a '(__gpupool_rest)'
)";
  for (const Verb& verb : verbs()) {
    text += "complete -c gpupool -n __fish_use_subcommand -f -a " + std::string{verb.name} + " -d " +
            single_quoted(verb.sentence) + "\n";
  }
  const auto list = [](const Values& values) {
    return values.words.empty() ? "" : " -a " + single_quoted(joined(values.words));
  };
  for (const Verb& verb : verbs()) {
    const std::string seen = "complete -c gpupool -n 'not __gpupool_program; and __fish_seen_subcommand_from " +
                             std::string{verb.name} + "'";
    for (const VerbOption& option : verb.options) {
      text += seen + " -l " + std::string{option.name.substr(2)};
      const Values values = values_of(option);
      if (option.kind != OptionKind::flag) text += values.files ? " -r -F" : " -x" + list(values);
      text += " -d " + single_quoted(option.sentence) + "\n";
    }
    const Values operands = operands_of(verb);
    text += seen + (operands.files ? " -F" : " -f" + list(operands)) + "\n";
  }
  return text;
}

}  // namespace gpupool::cli
