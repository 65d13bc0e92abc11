// `gpupool doctor`: will it work here? Every check of doctor/finding.h, and the worst of what they found as exit
// status.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/console.h"
#include "cli/doctor/finding.h"
#include "cli/libraries.h"
#include "cli/manual.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

constexpr std::size_t kLongestLine = 4096;

Colour colour_of(Level level) {
  switch (level) {
    case Level::ok:
      return Colour::good;
    case Level::note:
      return Colour::plain;
    case Level::warning:
      return Colour::doubtful;
    case Level::broken:
      return Colour::bad;
  }
  return Colour::plain;
}

Exit exit_of(Level worst) {
  switch (worst) {
    case Level::ok:
    case Level::note:
      return Exit::ok;
    case Level::warning:
      return Exit::warning;
    case Level::broken:
      return Exit::broken;
  }
  return Exit::broken;
}

std::string text_of(const Finding& finding) {
  std::string line = coloured(padded(level_text(finding.level), 9), colour_of(finding.level), Stream::out) +
                     padded(finding.what, 15) + escaped(finding.says, kLongestLine);
  if (!finding.mend.empty()) line += "; to mend: " + escaped(finding.mend, kLongestLine);
  return line + "\n";
}

std::string json_of(const Findings& findings, Level worst) {
  nlohmann::ordered_json json{{"status", level_text(worst)}, {"findings", nlohmann::ordered_json::array()}};
  for (const Finding& finding : findings) {
    json["findings"].push_back(
        {{"level", level_text(finding.level)}, {"what", finding.what}, {"says", finding.says}, {"mend", finding.mend}});
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

Exit doctor_verb(const Arguments& arguments) {
  const Environment environment = own_environment();
  Findings findings{{Level::ok, "gpupool", "version " + version() + ", " + own_folder() + "/gpupool", ""}};
  check_driver(findings);
  check_libraries(findings, arguments.value("--library"));
  check_preload(findings, environment);
  check_configuration(findings);
  check_frameworks(findings, environment, arguments.program);
  check_shared_memory(findings);
  check_cards(findings);
  check_limits(findings);
  look(findings, "child", [&] { check_child(findings, arguments.value("--library")); });
  if (!arguments.program.empty()) {
    check_program(findings, arguments.program.front());
    const bool broken = std::ranges::max_element(findings, {}, &Finding::level)->level == Level::broken;
    if (!broken) look(findings, "run", [&] { check_run(findings, arguments.program, arguments.value("--library")); });
  }
  const Level worst = std::ranges::max_element(findings, {}, &Finding::level)->level;
  if (arguments.has("--json")) {
    print(json_of(findings, worst));
  } else {
    std::string text;
    for (const Finding& finding : findings) text += text_of(finding);
    print(text);
  }
  return exit_of(worst);
}

}  // namespace gpupool::cli
