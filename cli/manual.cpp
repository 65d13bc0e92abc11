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

// A paragraph in lines of at most 78 columns, each safe by itself.
std::string roff_lines(std::string_view text) {
  constexpr std::size_t kColumns = 78;
  std::string out;
  std::string line;
  const auto end_line = [&] {
    out += line + "\n";
    line.clear();
  };
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    if (!line.empty() && line.size() + 1 + roff(word).size() > kColumns) end_line();
    line += line.empty() ? roff(word) : " " + roff(word).substr(word.starts_with('.') ? 2 : 0);
    begin = end + 1;
  }
  end_line();
  return out;
}

constexpr std::string_view kHead = R"(# The command

Generated from `cli/verbs.def` by `gpupool help --as markdown`; change the table, not this page. The man page and the
completions of bash, zsh and fish come from the same table: `gpupool help --as man`, `--as bash`, `--as zsh`, `--as fish`.

What a verb finds goes to standard output, what it has to say about its work to standard error. Colours appear only on a
terminal, and never when `NO_COLOR` is set. Sizes are written as in [the configuration](configuration.md). A file that a verb writes is
a new one, for nothing is overwritten; `-` as its name is standard output.
)";

constexpr std::string_view kTail = R"(
## Where the library is looked for

`run`, `size` and `doctor` use the `libgpupool.so` beside the command: in `../lib`, `../lib/gpupool`, `../lib64`,
`../lib64/gpupool` or the command's own folder, in this order, unless `--library` names another. It is put in front of what `LD_PRELOAD` holds; what is
there stays.

## What size says

A row for each process and device, those included that end without a report (`os._exit`, a signal). `pool.size` for next time is the
largest need and a margin: 10% for a program, which will not ask in quite the same order again; with `--pooled` as much more as
holes took of the need, up to 30%. For traces it is a size that serves each of them as recorded and in up to 64 slightly other
orders (`reordered_bytes`), because blocks lie elsewhere in a second run; whatever `--margin` says, 0% included, is added to the exact need
instead. No number of tried orders is a promise for the next one. `pool.headroom` is what the cards held beyond
the program's own requests: contexts, kernels, libraries. The driver's allocators keep more than was asked for, and more of it with time,
so the least of these differences counts, once half of the memory was there. How often it fits is the card's memory divided by both.

On a terminal a line shows live and reserved memory, the need so far, and the time. `--seconds` and `--steps` interrupt the program as Ctrl-C
would; ten seconds later it is asked by SIGTERM, and then ended. Steps are seen, not told: live memory rises and comes back to what
stays. Loading and the first steps are not counted, and steps of a few milliseconds may be missed, so ask for many rather than few.
Until the program ends, its live pages lie in a folder of their own, where `gpupool top` does not look.

## Traces

`replay` and `size` look at the first bytes of a file. Each may be compressed with gzip.

| format | what it is |
|---|---|
| gpupool | what `trace.path` or `gpupool run --trace` recorded; of several devices the one with most events |
| CSV | `a,BLOCK,BYTES,STREAM` is a request, `f,BLOCK` its free; numbers are decimal, a block's number may be used again after its free. Without a stream the request is a plain one (cudaMalloc). `f,BLOCK,STREAM` frees on another stream. `#` begins a comment. |
| RMM | the CSV log of RMM's logging resource: `Thread,Time,Action,Pointer,Size,Stream` |
| PyTorch | the pickle of `torch.cuda.memory._dump_snapshot` after `_record_memory_history`; of several devices the one with most entries. Only plain data is read: nothing in the file is imported or called. |

All work of a trace counts as complete at once, so that a replay shows the need for memory, and not the waits and fences for work that
is still under way. `driver_us` adds up what the calls to the driver cost when measured on an H200; `requests_per_second` is the pool's own speed on the host
that replays.
)";

constexpr std::string_view kExamples[] = {
    "gpupool run --size 8GiB --unify -- python train.py",
    "gpupool run --stats 'report-%r-%p.json' -- torchrun --nproc-per-node 8 train.py",
    "gpupool report report-*.json",
    "gpupool size --unify --write next.json -- python train.py && gpupool run --unify --config next.json -- python "
    "train.py",
    "gpupool run --trace t.gpt -- python train.py && gpupool replay t.gpt && gpupool size t.gpt",
    "gpupool report --torch-snapshot t.pickle t.gpt",
    "gpupool replay trace.csv.gz --compare auto_growth,pytorch,pytorch_expandable",
    "gpupool size trace.csv.gz --target-waste 2%",
    "gpupool doctor -- python train.py",
};

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
  text += kTail;
  text += "\n## Examples\n\n";
  for (const std::string_view example : kExamples) text += "    " + std::string{example} + "\n";
  text += "\n## Exit status\n\n| status | meaning |\n|---|---|\n";
  for (const ExitRow& row : exit_rows()) {
    text += "| " + std::to_string(static_cast<int>(row.status)) + " | " + std::string{row.sentence} + " |\n";
  }
  text += "\n| verb | status | meaning |\n|---|---|---|\n";
  for (const Verb& verb : verbs()) {
    for (const ExitRow& row : exit_rows_of(verb.name)) {
      text += "| " + std::string{verb.name} + " | " + std::to_string(static_cast<int>(row.status)) + " | " +
              std::string{row.sentence} + " |\n";
    }
  }
  return text;
}

std::string manual_man() {
  std::string text = ".TH GPUPOOL 1 \"\" \"gpupool " + version() + "\" \"User Commands\"\n.SH NAME\ngpupool \\- ";
  text += "one best\\-fit pool of device memory for any CUDA program\n.SH SYNOPSIS\n";
  for (const Verb& verb : verbs())
    text += (&verb == verbs().data() ? "" : ".br\n") + (".B " + roff(usage(verb))) + "\n";
  for (const Verb& verb : verbs()) {
    std::string title{verb.name};
    std::transform(title.begin(), title.end(), title.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? char(c - 32) : c; });
    text += ".SH " + title + "\n" + roff_lines(verb.sentence);
    for (const VerbOption& option : verb.options) {
      std::string sentence{option.sentence};
      if (!option.key.empty()) sentence += " Sets " + std::string{option.key} + ".";
      if (option.kind == OptionKind::list) sentence += " May be repeated.";
      text += ".TP\n.B " + roff(shown(option)) + "\n" + roff_lines(sentence);
    }
  }
  text += ".SH EXIT STATUS\n";
  for (const ExitRow& row : exit_rows()) {
    text += ".TP\n" + std::to_string(static_cast<int>(row.status)) + "\n" + roff_lines(row.sentence);
  }
  for (const Verb& verb : verbs()) {
    for (const ExitRow& row : exit_rows_of(verb.name)) {
      text += ".TP\n" + std::to_string(static_cast<int>(row.status)) + ", " + std::string{verb.name} + "\n" +
              roff_lines(row.sentence);
    }
  }
  text += ".SH ENVIRONMENT\n.TP\n.B GPUPOOL_CONFIG\nThe configuration file.\n.TP\n.B GPUPOOL_*\n" +
          roff_lines("Every option of the configuration, such as GPUPOOL_POOL_SIZE; gpupool config shows them all.") +
          ".TP\n.B NO_COLOR\nNo colours on a terminal.\n.SH EXAMPLES\n.nf\n";
  for (const std::string_view example : kExamples) text += roff(example) + "\n";
  return text + ".fi\n";
}

}  // namespace gpupool::cli
