// gpupool_load: a recorded training run as a CUDA program whose data is checked. Prints one "name value" line for each
// result; ends with 0 if everything was right, 1 if not, 2 for a wrong command line.
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "cli/trace/fields.h"
#include "cli/trace/read.h"
#include "config/text.h"
#include "tests/load/load.h"

namespace {

using namespace gpupool;
using namespace gpupool::load;

constexpr char kUsage[] =
    "usage: gpupool_load TRACE [--api malloc|async] [--streams N] [--limit EVENTS] [--scale FACTOR]\n"
    "                    [--fill pieces|whole] [--cudart FILE]\n";

struct Usage : std::runtime_error {
  using runtime_error::runtime_error;
};

struct Arguments {
  std::string trace;
  std::string cudart;
  Settings settings;
};

std::uint64_t count_of(const std::string& text) {
  const auto number = cli::number_in(text);
  if (!number || *number == 0) throw Usage(text + " is no number above 0");
  return *number;
}

double factor_of(const std::string& text) {
  std::size_t used = 0;
  const double factor = std::stod(text, &used);
  if (used != text.size() || !(factor > 0 && factor <= 1000)) throw Usage(text + " is no factor above 0");
  return factor;
}

template <class Choice>
Choice choice_of(const std::string& text, const char* first, Choice one, const char* second, Choice other) {
  if (text == first) return one;
  if (text == second) return other;
  throw Usage(text + " is neither " + first + " nor " + second);
}

Arguments parse(int count, char** words) {
  Arguments out;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (!word.starts_with("--")) {
      if (!out.trace.empty()) throw Usage("two traces");
      out.trace = word;
      continue;
    }
    if (i + 1 == count) throw Usage(word + " needs a value");
    const std::string value = words[++i];
    if (word == "--api") {
      out.settings.api = choice_of(value, "malloc", Api::malloc, "async", Api::async);
    } else if (word == "--streams") {
      out.settings.streams = static_cast<unsigned>(count_of(value));
    } else if (word == "--limit") {
      out.settings.limit = count_of(value);
    } else if (word == "--scale") {
      out.settings.scale = factor_of(value);
    } else if (word == "--fill") {
      out.settings.fill = choice_of(value, "pieces", Fill::pieces, "whole", Fill::whole);
    } else if (word == "--cudart") {
      out.cudart = value;
    } else {
      throw Usage("there is no " + word);
    }
  }
  if (out.trace.empty()) throw Usage("no trace");
  return out;
}

void show(const char* name, std::uint64_t number) {
  std::printf("%-16s %llu\n", name, static_cast<unsigned long long>(number));
}

}  // namespace

int main(int count, char** words) try {
  const Arguments arguments = parse(count, words);
  const cli::Trace trace = cli::read_trace(arguments.trace);
  const Runtime runtime(arguments.cudart);
  const Outcome outcome = play(runtime, trace, arguments.settings);
  show("events", outcome.events);
  std::printf("%-16s %.2f\n", "seconds", outcome.seconds);
  show("live_peak_bytes", outcome.live_peak_bytes);
  show("used_peak_bytes", outcome.used_peak_bytes);
  show("checked_bytes", outcome.checked_bytes);
  show("wrong_bytes", outcome.wrong_bytes);
  show("overlaps", outcome.overlaps);
  for (const std::string& finding : outcome.findings) std::fprintf(stderr, "gpupool_load: %s\n", finding.c_str());
  return outcome.good() ? 0 : 1;
} catch (const Usage& problem) {
  std::fprintf(stderr, "gpupool_load: %s\n%s", problem.what(), kUsage);
  return 2;
} catch (const std::exception& problem) {
  std::fprintf(stderr, "gpupool_load: %s\n", problem.what());
  return 1;
}
