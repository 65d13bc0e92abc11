// The environment in which a program gets a pool, and the start of it. Shared by run, size and doctor.
// Environment is a copy of this process's own; nothing here changes environ.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/settings.h"

namespace gpupool::cli {

using Environment = std::map<std::string, std::string>;

Environment own_environment();
std::string value_of(const Environment& environment, const std::string& name);

/// One of a framework's switches that make gpupool its only cache.
struct Switch {
  std::string_view framework;
  std::string_view variable;
  std::string_view value;
  std::string_view not_beside;  // another variable which says the same; empty if there is none
  bool is_older_name = false;   // of the one in not_beside
  std::string_view module;      // the framework's name in Python
  /// How the name of a file begins that only this framework loads; empty where another row has it.
  std::string_view library = {};
};
const std::vector<Switch>& unify_switches();

/// Whether the user has said nothing, so that the framework keeps its cache.
bool is_open(const Environment& environment, const Switch& one);

/// Sets the switches that the user has not set; returns lines that say what was set, and what was left as it is.
std::vector<std::string> unify(Environment& environment);

/// LD_PRELOAD, GPUPOOL_CONFIG and a variable for each setting, as the options of `verb` in `arguments` say.
void prepare(Environment& environment, std::string_view verb, const Arguments& arguments);
void set(Environment& environment, const Setting& setting);

/// Becomes the program. Returns only by a Problem: not found, or not executable.
[[noreturn]] void become(const std::vector<std::string>& program, const Environment& environment);

/// Called every few milliseconds with the time since the start; returns the signal to send, 0 for none.
using Watch = std::function<int(double seconds)>;

/// Runs the program and waits for it. Its status as a shell would say it. A signal of `watch`, or of others, goes to
/// the program as the terminal's would (processes.h); if one did, those of its processes that have `mark` end with it.
int run_and_wait(const std::vector<std::string>& program, const Environment& environment, const std::string& mark,
                 const Watch& watch);

}  // namespace gpupool::cli
