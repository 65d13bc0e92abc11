// See manual.h. The prose stands here, so that the page has one source and one test.
#include "config/manual.h"

#include "config/table.h"

namespace gpupool {
namespace {

constexpr std::string_view kHead = R"(# Configuration

Generated from `config/options.def` by `scripts/generate-config-docs`; change the table, not this page.

Nothing needs to be set. What is set comes from a JSON file named by `GPUPOOL_CONFIG`, or from the environment:
`pool.size` is `GPUPOOL_POOL_SIZE`. For each key by itself, the environment wins over the file and the file over the default.
`gpupool config` prints every effective value and where it came from, `gpupool config --check FILE` tries a file,
`gpupool config --schema` prints its JSON Schema. Files to start from are in `config/examples/`.

A value that cannot be used costs one line that names the source, the key, the text and what holds instead. The program runs
in any case.
)";

constexpr std::string_view kGrammar = R"(
## How values are written

Blanks, tabs and line ends around a value are ignored, except in paths. Numbers are decimal, with a point; leading zeros
mean nothing (`08G` is `8G`). Signs, exponents (`1e9`), hexadecimal numbers and decimal commas are refused. An empty value is
refused, except for paths and lists of names.

| value | written | means |
|---|---|---|
| size | `8GiB`, `8Gi`, `512MiB`, `64KiB`, `1TiB` | with an i: 1024s, so 8 x 2^30 bytes |
| | `8GB`, `8G`, `512MB`, `64K`, `1T` | without: 1000s, so 8 x 10^9 bytes, 7% less than `8GiB` |
| | `4096`, `4096B` | bytes; `0` is 0 |
| | `1.5GiB` | fractions of a unit work; part bytes are dropped; at most 9 decimals |
| share | `92%`, `0.92` | of the card's total memory, not of what is free; `100%` and `1.0` are all of it |
| growth | `64MiB`, `1.5x` | a size, or a factor above 1x up to 16x of what the pool holds |
| duration | `500ms`, `1s`, `2min` | a unit is needed |
| on or off | `on`, `off`, `true`, `false`, `1`, `0` | |
| name | `best_fit` | exactly as listed; wrong case is refused |
| names | `python*,torchrun` | shell patterns for the file name of the executable; in JSON also a list of strings |

Units may be in any case (`8gib`), and a blank may precede them. Refused, because they are most likely something else than
they say: a number without unit from 1 to 1023 (`100` is neither percent nor MiB), a share above 1 or 100% (`4.0`), and one
below 1% (`0.0`, `0.5%`). "No limit" is `100%`, not `-1`.

## The file

One JSON object (RFC 8259: no comments, no trailing commas) of at most 1 MiB and 16 levels. Groups may be nested or written
with points: `{"pool": {"size": "8GiB"}}` and `{"pool.size": "8GiB"}` are the same. A size or share may be a JSON string or a
JSON number; an on-or-off option a string, `true` or `false`; everything else is a string. A file that is not JSON is not used
at all; one bad value in a good file costs only that value. Of a key given twice the later one counts, with a message. An unknown key is named, with
the nearest one.

A key that begins with `$`, in any object, is a comment: it and its value, whatever that is, are ignored. `gpupool config --init FILE`
writes a file with every option and beside each `$NAME` with its meaning, default and unit.

The file is refused if it is no regular file, if every user may write it, or if it belongs to another user who is not root.

## How amounts become bytes

For each device, once its memory is known; each step that changes what was asked for says so:

1. `pool.strategy` passthrough or off: no pool. auto_growth: nothing up front.
2. A `pool.headroom` that leaves nothing of the card is replaced by the default, or by an eighth of a card too small for it.
3. `pool.max` is at most the total minus the headroom.
4. `pool.size` is at most `pool.max`. Equal values work: both are cut to whole handles of 2 MiB, and never below one.
5. `pool.size` is at most what is free minus the headroom when it is reserved. The pool may grow to `pool.max` later.
6. `pool.growth` is at most `pool.max`; a `pool.handle` above `pool.max` becomes auto.

The limits hold for each process, not for a container or a group of processes.
)";

std::string option_entry(const OptionRow& row) {
  const std::string shown = row.default_text.empty() ? "unset" : "`" + std::string{row.default_text} + "`";
  std::string text = "| `" + std::string{row.key} + "`<br>`" + environment_name(row.key) + "` | " + shown + " | " +
                     std::string{row.unit} + " | " + std::string{row.sentence};
  if (row.kind == ValueKind::choice) {
    for (const Choice& choice : row.choices) {
      text += "<br>`" + std::string{choice.text} + "`: " + std::string{choice.sentence};
    }
  } else if (const std::string range = range_text(row); !range.empty()) {
    text += " Limits: " + range + ".";
  }
  if (!row.origin.empty()) text += "<br>Known as: " + std::string{row.origin} + ".";
  return text + " |\n";
}

}  // namespace

std::string manual_markdown() {
  std::string text{kHead};
  text += "\n## Options\n";
  for (const OptionGroup& group : option_groups()) {
    text += "\n### " + std::string{group.name} + "\n\n" + std::string{group.sentence} + "\n\n";
    text += "| key, variable | default | unit | meaning |\n|---|---|---|---|\n";
    for (const OptionRow& row : option_rows()) {
      if (row.group == group.name) text += option_entry(row);
    }
  }
  text += "\n### devices\n\n" + std::string{kDevicesSentence} +
          "\n`{\"devices\": {\"0\": {\"pool\": {\"size\": \"8GiB\"}}}}`, or the inner object as JSON in "
          "`GPUPOOL_DEVICES`.\nAn override holds for its device whatever the source of the general value; the "
          "environment's wins over the file's, and one by\nUUID over one by ordinal.\n";
  text += kGrammar;
  return text;
}

}  // namespace gpupool
