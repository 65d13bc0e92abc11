// See manual.h: completions for bash, zsh and fish. Verbs, options and, behind "--", the shell's own completion of
// programs.
#include "cli/manual.h"

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

bool takes_file(const VerbOption& option) { return option.placeholder == "FILE" || option.placeholder == "PATH"; }

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
  local word=${COMP_WORDS[COMP_CWORD]} i
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
  local options=
  case ${COMP_WORDS[1]} in
)";
  for (const Verb& verb : verbs()) {
    text += "    " + std::string{verb.name} + ") options=\"" + option_list(verb) + "\" ;;\n";
  }
  return text + R"(  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
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
  for (const Verb& verb : verbs()) {
    text += "    " + std::string{verb.name} + ") _arguments '--help[Explains the verb.]'";
    for (const VerbOption& option : verb.options) {
      std::string spec = (option.kind == OptionKind::list ? "*" : "") + std::string{option.name} + "[" +
                         zsh_text(option.sentence) + "]";
      if (option.kind != OptionKind::flag)
        spec += ":" + std::string{option.placeholder} + ":" + (takes_file(option) ? "_files" : "");
      text += " " + single_quoted(spec);
    }
    text += " '*:file:_files' ;;\n";
  }
  return text + "  esac\n}\n_gpupool \"$@\"\n";
}

std::string completion_fish() {
  std::string text = "# fish completion of gpupool\n";
  for (const Verb& verb : verbs()) {
    text += "complete -c gpupool -n __fish_use_subcommand -f -a " + std::string{verb.name} + " -d " +
            single_quoted(verb.sentence) + "\n";
  }
  for (const Verb& verb : verbs()) {
    const std::string seen = "complete -c gpupool -n '__fish_seen_subcommand_from " + std::string{verb.name} + "'";
    for (const VerbOption& option : verb.options) {
      text += seen + " -l " + std::string{option.name.substr(2)};
      if (option.kind != OptionKind::flag) text += takes_file(option) ? " -r -F" : " -x";
      text += " -d " + single_quoted(option.sentence) + "\n";
    }
  }
  return text;
}

}  // namespace gpupool::cli
