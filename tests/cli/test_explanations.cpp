// The tables are one: help, page, man page and completions name every verb and every option; wrong words are answered
// with the right ones.
#include "cli/console.h"
#include "cli/manual.h"
#include "cli/parse.h"
#include "tests/catch.h"
#include "tests/cli/run.h"

using namespace gpupool;
using namespace gpupool::cli;
using tests::contains;

namespace {

std::string fault(const std::vector<std::string>& words) {
  try {
    parse(words);
  } catch (const Problem& problem) {
    CHECK(problem.status() == Exit::usage);
    return problem.what();
  }
  return "";
}

}  // namespace

TEST_CASE("docs/cli.md is what the table says: write it anew with gpupool help --as markdown > docs/cli.md") {
  CHECK(tests::read_text(tests::source_path("docs/cli.md")) == manual_markdown());
}

TEST_CASE("every explanation names every verb and every option") {
  const std::string man = manual_man();
  for (const Verb& verb : verbs()) {
    const std::string help = verb_help(verb);
    CHECK(contains(command_help(), verb.name));
    CHECK(contains(man, verb.sentence.substr(0, 20)));
    for (const VerbOption& option : verb.options) {
      CAPTURE(option.name);
      CHECK(contains(help, option.name));
      CHECK(contains(help, option.sentence));
      CHECK(contains(manual_markdown(), option.name));
      for (const std::string& completion : {completion_bash(), completion_zsh(), completion_fish()}) {
        CHECK(contains(completion, option.name.substr(2)));
        CHECK(contains(completion, verb.name));
      }
    }
  }
  for (const ExitRow& row : exit_rows()) CHECK(contains(command_help(), row.sentence));
}

TEST_CASE("the shells accept their completions") {
  const tests::Folder folder;
  const std::string script = folder.file("gpupool.bash", completion_bash());
  CHECK(std::system(("bash -n " + script).c_str()) == 0);
  const std::string use = folder.file(
      "use.bash",
      "source " + script +
          "\nCOMP_WORDS=(gpupool run --head)\nCOMP_CWORD=2\n_gpupool\n[ \"${COMPREPLY[*]}\" = --headroom ]\n");
  CHECK(std::system(("bash " + use).c_str()) == 0);
}

TEST_CASE("a command line is a verb with options, operands and a program") {
  const Parsed parsed =
      parse({"run", "--set", "a=1", "--size=8GiB", "--unify", "--set", "b=2", "--", "python", "--size", "--", "x"});
  CHECK(parsed.verb->name == "run");
  CHECK(parsed.arguments.value("--size") == "8GiB");
  CHECK(parsed.arguments.values("--set") == std::vector<std::string>{"a=1", "b=2"});
  CHECK(parsed.arguments.has("--unify"));
  CHECK_FALSE(parsed.arguments.has("--max"));
  CHECK(parsed.arguments.program == std::vector<std::string>{"python", "--size", "--", "x"});
  CHECK(parse({"replay", "--set", "a=1", "trace", "--json"}).arguments.operands == std::vector<std::string>{"trace"});
  CHECK(parse({"replay", "--help"}).help);
  CHECK(parse({"--version"}).version);
}

TEST_CASE("what is wrong is named, with the nearest word that is right") {
  CHECK(contains(fault({}), "a verb is missing"));
  CHECK(contains(fault({"reprot"}), "did you mean report?"));
  CHECK(contains(fault({"rnu"}), "did you mean run?"));
  CHECK(contains(fault({"run", "--sice", "1GiB", "--", "x"}), "\"--sice\" is no option; did you mean --size?"));
  CHECK(contains(fault({"run"}), "the program is missing"));
  CHECK(contains(fault({"run", "--"}), "no program follows --"));
  CHECK(contains(fault({"run", "python"}), "a program is written after --"));
  CHECK(contains(fault({"replay"}), "TRACE is missing"));
  CHECK(contains(fault({"replay", "a", "b"}), "\"b\" is not expected"));
  CHECK(contains(fault({"config", "--", "x"}), "no program is run"));
  CHECK(contains(fault({"run", "--size"}), "--size: SIZE is missing (see gpupool run --help)"));
  CHECK(contains(fault({"bad\nname\x1b[31m"}), "bad\\nname"));
}

TEST_CASE("help and version come with status 0, faults with status 2 on standard error") {
  CHECK(tests::command({"--help"}).out == command_help());
  CHECK(tests::command({"help", "run"}).out == verb_help(*find_verb("run")));
  CHECK(contains(tests::command({"help", "--as", "mann"}).err, "did you mean man?"));
  CHECK(contains(tests::command({"--version"}).out, "gpupool "));
  const tests::Outcome wrong = tests::command({"nothing"});
  CHECK(wrong.status == 2);
  CHECK(wrong.out.empty());
  CHECK(wrong.err == "gpupool: error: \"nothing\" is no verb (see gpupool --help)\n");
}
