// `gpupool replay`: what a trace would have needed, with our pool or with others'.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/console.h"
#include "cli/models/model.h"
#include "cli/replay/play.h"
#include "cli/replay/setup.h"
#include "cli/trace/read.h"
#include "config/table.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string fixed(double value, const char* format) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

Json json_of(const Outcome& outcome) {
  Json json{{"strategy", outcome.strategy}};
#define NUMBER(name, sentence) json[#name] = outcome.name;
#include "cli/replay/outcome.def"
#undef NUMBER
  json["ratio"] = outcome.ratio();
  json["waste"] = outcome.waste();
  json["driver_us"] = outcome.driver_us;
  json["late_driver_us"] = outcome.late_driver_us;
  json["seconds"] = outcome.seconds;
  json["requests_per_second"] = outcome.requests_per_second();
  return json;
}

Json json_of(const Trace& trace) {
  return {{"trace", trace.name}, {"format", trace.format}, {"events", trace.events.size()}, {"streams", trace.streams}};
}

std::string text_of(const Outcome& outcome) {
  std::string text;
  const auto row = [&](std::string_view name, const std::string& value, std::string_view sentence) {
    text += trimmed("  " + padded(name, 22) + padded(value, 14) + std::string{sentence}) + "\n";
  };
  row("strategy", outcome.strategy, "");
#define NUMBER(name, sentence)                                                                                    \
  row(#name, std::string_view{#name}.ends_with("_bytes") ? readable(outcome.name) : std::to_string(outcome.name), \
      sentence);
#include "cli/replay/outcome.def"
#undef NUMBER
  row("ratio", fixed(outcome.ratio(), "%.3f"), "reserved for one byte that lived, at the peaks");
  row("waste", fixed(outcome.waste() * 100, "%.1f%%"), "needed memory that live blocks at their peak did not fill");
  row("driver_us", fixed(outcome.driver_us, "%.0f"), "what the calls to the driver cost, as measured on a card");
  row("late_driver_us", fixed(outcome.late_driver_us, "%.0f"), "of these, in the second half of the trace");
  row("requests_per_second", fixed(outcome.requests_per_second(), "%.0f"), "on this host, in this replay");
  return text;
}

std::string table_of(const std::vector<Outcome>& outcomes) {
  std::string text = "  " + padded("strategy", 22) +
                     "   reserved   ratio   waste    growth  migrations    fences  driver ms     oom\n";
  for (const Outcome& one : outcomes) {
    char line[160];
    std::snprintf(line, sizeof line, "%11s %7.3f %6.1f%% %9llu %11llu %9llu %10.1f %7llu\n",
                  readable(one.reserved_peak_bytes).c_str(), one.ratio(), one.waste() * 100,
                  static_cast<unsigned long long>(one.growth_steps), static_cast<unsigned long long>(one.migrations),
                  static_cast<unsigned long long>(one.fences), one.driver_us / 1000,
                  static_cast<unsigned long long>(one.oom));
    text += "  " + padded(one.strategy, 22) + line;
  }
  return text;
}

// One name of --compare: a strategy of the pool, or a model; PyTorch's may carry a largest block to split.
class Contestant {
 public:
  Contestant(const std::string& text, const ReplaySetup& setup) : name_(text), setup_(setup) {
    const std::size_t colon = text.find(':');
    const std::string name = text.substr(0, colon);
    if (colon != std::string::npos) {
      if (name != "pytorch")
        throw Problem(Exit::usage, "--compare: " + in_quotes(text) + ": only pytorch takes a size");
      max_split_ = bytes_of_text("--compare", text.substr(colon + 1));
    }
    std::vector<std::string> names;
    for (const ModelRow& row : model_rows()) {
      if (row.name == name) model_ = &row;
      names.emplace_back(row.name);
    }
    for (const Strategy strategy : {Strategy::best_fit, Strategy::auto_growth}) {
      if (choice_text(strategy) == name) ours_ = true, setup_.options.strategy = strategy;
      names.emplace_back(choice_text(strategy));
    }
    if (ours_ || model_ != nullptr) return;
    const std::string nearest{nearest_name(name, names)};
    std::string all;
    for (const std::string& one : names) all += (all.empty() ? "" : ", ") + one;
    throw Problem(Exit::usage, "--compare: " + in_quotes(name) + " is no allocator; " +
                                   (nearest.empty() ? "there are " + all : "did you mean " + nearest + "?"));
  }

  Outcome play(const Trace& trace) const {
    if (ours_) return play_pool(trace, resolve_for_replay(setup_));
    return play_model(trace, name_, *model_->make(setup_.card, max_split_));
  }

 private:
  std::string name_;
  ReplaySetup setup_;
  bool ours_ = false;
  const ModelRow* model_ = nullptr;
  Bytes max_split_ = 0;
};

std::vector<std::string> names_in(const std::string& list) {
  NameList names;
  if (parse(list, names) != Fault::none || names.empty())
    throw Problem(Exit::usage, "--compare: " + in_quotes(list) + " is no list of names");
  return names;
}

// One line for each that could not serve all.
Exit tell_refused(const Trace& trace, const std::vector<Outcome>& outcomes) {
  Exit status = Exit::ok;
  for (const Outcome& one : outcomes) {
    if (one.oom == 0) continue;
    note(one.strategy + " refused " + std::to_string(one.oom) + " of " + std::to_string(trace.requests) +
         " requests: the other numbers are of those that it served");
    status = Exit::warning;
  }
  return status;
}

}  // namespace

Exit replay_verb(const Arguments& arguments) {
  const ReplaySetup setup = replay_setup("replay", arguments);
  std::vector<Contestant> contestants;
  if (arguments.has("--compare")) {
    for (const std::string& name : names_in(arguments.value("--compare"))) contestants.emplace_back(name, setup);
  }
  const ResolvedPool pool = resolve_for_replay(setup);
  const Trace trace = read_trace(arguments.operands.front());
  if (trace.requests == 0) throw Problem(Exit::input, escaped(trace.name, trace.name.size()) + ": holds no request");
  for (const std::string& line : trace.notes) note(line);
  Json json = json_of(trace);
  const std::string head = escaped(trace.name, trace.name.size()) + ": " + trace.format + ", " +
                           std::to_string(trace.events.size()) + " events\n";
  if (contestants.empty()) {
    const Outcome outcome = play_pool(trace, pool);
    json.update(json_of(outcome));
    print(arguments.has("--json") ? json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"
                                  : head + text_of(outcome));
    return tell_refused(trace, {outcome});
  }
  std::vector<Outcome> outcomes;
  json["compare"] = Json::array();
  for (const Contestant& contestant : contestants) {
    outcomes.push_back(contestant.play(trace));
    json["compare"].push_back(json_of(outcomes.back()));
  }
  print(arguments.has("--json") ? json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"
                                : head + table_of(outcomes));
  return tell_refused(trace, outcomes);
}

}  // namespace gpupool::cli
