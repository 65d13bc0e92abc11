// What the doctor finds: one line each, with how to mend it.
// Each check is a function that looks at one thing and changes nothing.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/launch.h"
#include "config/bytes.h"

namespace gpupool::cli {

enum class Level {
  ok,
  note,     // worth knowing, nothing to mend
  warning,  // works, but not as it could
  broken,   // does not work
};
std::string_view level_text(Level level);

struct Finding {
  Level level = Level::ok;
  std::string what;  // the thing that was looked at: driver, front, core, preload, ...
  std::string says;
  std::string mend;  // empty where there is nothing to do
};
using Findings = std::vector<Finding>;

/// Behind so many scripts an executable is looked for.
inline constexpr int kMostInterpreters = 5;

/// Does a part of a check. Where that has no place for its files (a read-only root without /tmp) a finding says so:
/// false.
bool look(Findings& findings, const char* what, const std::function<void()>& part);

void check_driver(Findings& findings);
/// The front that `run` would use, and its core beside it: there, and accepted by the loader.
void check_libraries(Findings& findings, const std::string& wanted);
void check_preload(Findings& findings, const Environment& environment);
void check_configuration(Findings& findings);
/// The frameworks of the program's Python, or of python3, and those of their switches that matter.
void check_frameworks(Findings& findings, const Environment& environment, const std::vector<std::string>& program);
void check_shared_memory(Findings& findings);
/// Each card: who uses it, and whether pool.size and pool.headroom fit.
void check_cards(Findings& findings);
/// What a container, its control group or the shell limits.
void check_limits(Findings& findings);
/// The least memory that the control groups of a process allow, 0 for no limit: `groups` as in /proc/self/cgroup, both
/// versions, `mount` as /sys/fs/cgroup.
Bytes control_group_limit(const std::string& groups, const std::string& mount);
/// Whether a child gets the front that `run` would use.
void check_child(Findings& findings, const std::string& wanted);
/// Runs the program, for at most a minute and in silence, and counts what arrives.
void check_run(Findings& findings, const std::vector<std::string>& program, const std::string& wanted);
/// Whether a preload reaches this program.
void check_program(Findings& findings, const std::string& program);

}  // namespace gpupool::cli
