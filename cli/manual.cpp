// See manual.h: docs/cli.md and the man page. The prose stands here, so that both have one source and one test.
#include "cli/manual.h"

#include <algorithm>

namespace gpupool::cli {
namespace {

std::string shown(const VerbOption& option) {
  return std::string{option.name} + (option.placeholder.empty() ? "" : " " + std::string{option.placeholder});
}

// For troff: a hyphen that is meant as one, and no control line by accident.
std::string roff(std::string_view text) {
  std::string out;
  if (text.starts_with('.') || text.starts_with('\'')) out += "\\&";
  for (const char c : text) {
    if (c == '-') {
      out += "\\-";
    } else if (c == '\\') {
      out += "\\e";
    } else {
      out += c;
    }
  }
  return out;
}

constexpr std::string_view kHead = R"(# The command

Generated from `cli/verbs.def` by `gpupool help --as markdown`; change the table, not this page. The man page and the
completions of bash, zsh and fish come from the same table: `gpupool help --as man`, `--as bash`, `--as zsh`, `--as fish`.

What a verb finds goes to standard output, what it has to say about its work to standard error. Colours appear only on a
terminal, and never when `NO_COLOR` is set. Sizes are written as in [the configuration](configuration.md).
)";

}  // namespace

std::string manual_markdown() {
  std::string text{kHead};
  for (const Verb& verb : verbs()) {
    text += "\n## " + std::string{verb.name} + "\n\n    " + usage(verb) + "\n\n" + std::string{verb.sentence} + "\n";
    if (verb.options.empty()) continue;
    text += "\n| option | meaning |\n|---|---|\n";
    for (const VerbOption& option : verb.options) {
      text += "| `" + shown(option) + "` | " + std::string{option.sentence};
      if (!option.key.empty()) text += " Sets `" + std::string{option.key} + "`.";
      if (option.kind == OptionKind::list) text += " May be repeated.";
      text += " |\n";
    }
  }
  text += "\n## Exit status\n\n| status | meaning |\n|---|---|\n";
  for (const ExitRow& row : exit_rows()) {
    text += "| " + std::to_string(static_cast<int>(row.status)) + " | " + std::string{row.sentence} + " |\n";
  }
  return text;
}

std::string manual_man() {
  std::string text = ".TH GPUPOOL 1 \"\" \"gpupool " + version() + "\" \"User Commands\"\n.SH NAME\ngpupool \\- ";
  text += "one best\\-fit pool of device memory for any CUDA program\n.SH SYNOPSIS\n";
  for (const Verb& verb : verbs()) text += ".B " + roff(usage(verb)) + "\n.br\n";
  for (const Verb& verb : verbs()) {
    std::string title{verb.name};
    std::transform(title.begin(), title.end(), title.begin(), [](char c) { return c >= 'a' && c <= 'z' ? char(c - 32) : c; });
    text += ".SH " + title + "\n" + roff(verb.sentence) + "\n";
    for (const VerbOption& option : verb.options) {
      text += ".TP\n.B " + roff(shown(option)) + "\n" + roff(option.sentence) + "\n";
    }
  }
  text += ".SH EXIT STATUS\n";
  for (const ExitRow& row : exit_rows()) {
    text += ".TP\n" + std::to_string(static_cast<int>(row.status)) + "\n" + roff(row.sentence) + "\n";
  }
  return text;
}

}  // namespace gpupool::cli
