// See setup.h.
#include "cli/replay/setup.h"

#include "cli/console.h"
#include "cli/settings.h"
#include "config/parse.h"
#include "config/resolve.h"
#include "config/table.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

bool is_default(const Loaded& loaded, std::string_view key) {
  const auto row = static_cast<std::size_t>(find_option(key) - option_rows().data());
  return loaded.sources[row].kind == SourceKind::default_value;
}

}  // namespace

Bytes bytes_of_text(std::string_view option, std::string_view text) {
  Bytes bytes = 0;
  const Fault fault = parse(text, bytes);
  if (fault != Fault::none)
    throw Problem(Exit::usage, std::string{option} + ": " + in_quotes(text) + " " + std::string{fault_text(fault)});
  return bytes;
}

Bytes card_of(const Arguments& arguments) {
  const Bytes card = bytes_of_text("--card", arguments.value("--card"));
  if (card == 0) throw Problem(Exit::usage, "--card: a card has memory");
  return card;
}

ReplaySetup replay_setup(std::string_view verb, const Arguments& arguments) {
  Loaded loaded = arguments.has("--config") ? loaded_from(arguments.value("--config")) : load(nullptr);
  for (const Diagnostic& diagnostic : loaded.diagnostics) note(diagnostic.message());
  for (const Setting& setting : settings_of(verb, arguments)) apply(loaded, setting);
  ReplaySetup setup{loaded.options.pool, kLargestCard};
  if (is_default(loaded, "pool.strategy")) setup.options.strategy = Strategy::auto_growth;
  if (arguments.has("--card")) {
    setup.card = card_of(arguments);
  } else if (is_default(loaded, "pool.size")) {
    setup.options.size = {};
  }
  if (!is_default(loaded, "pool.direct_above")) note("pool.direct_above is not replayed");
  return setup;
}

ResolvedPool resolve_for_replay(const ReplaySetup& setup) {
  const Resolution resolution = resolve(setup.options, setup.card, setup.card);
  for (const Diagnostic& diagnostic : resolution.diagnostics) {
    if (diagnostic.severity == Severity::warning) note(diagnostic.message());
  }
  if (resolution.pool.max == 0) {
    throw Problem(Exit::usage, "pool.strategy=" + to_text(setup.options.strategy) + " on a card of " +
                                   readable(setup.card) + " has no pool to replay");
  }
  return resolution.pool;
}

}  // namespace gpupool::cli
