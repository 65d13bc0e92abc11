// See finding.h: the frameworks that are installed for the program's Python, and what their switches say. Nothing is
// imported: Python is asked where it would look, so that no framework runs and no card is touched.
#include <signal.h>

#include <algorithm>
#include <sstream>

#include "cli/doctor/finding.h"
#include "cli/elf.h"
#include "cli/folder.h"

namespace gpupool::cli {
namespace {

constexpr double kPatienceSeconds = 20;
constexpr char kQuestion[] = R"(
import importlib.metadata, importlib.util
for name in ("torch", "jax", "tensorflow", "paddle", "cupy"):
    if importlib.util.find_spec(name):
        try:
            print(name, importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            print(name, "")
)";

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// The Python that runs the program, or the one that a shell would find.
std::string python_of(const std::vector<std::string>& program) {
  std::string path = program.empty() ? "" : find_program(program.front());
  for (int i = 0; i < kMostInterpreters && !path.empty(); ++i) {
    if (file_name(path).starts_with("python")) return path;
    const std::string interpreter = script_interpreter(path);
    path = interpreter.empty() ? "" : find_program(interpreter);
  }
  return find_program("python3");
}

struct Installed {
  std::string module;
  std::string version;
};

std::vector<Installed> installed_for(const std::string& python) {
  const Folder folder;
  const std::string answer = (folder.path() / "answer").string();
  run_and_wait(
      {"/bin/sh", "-c", "exec \"$1\" -c \"$2\" >\"$3\" 2>/dev/null </dev/null", "sh", python, kQuestion, answer},
      own_environment(), "", [](double seconds) { return seconds < kPatienceSeconds ? 0 : SIGKILL; });
  std::vector<Installed> found;
  std::istringstream lines(read_small_file(answer));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t blank = line.find(' ');
    if (blank != std::string::npos) found.push_back({line.substr(0, blank), line.substr(blank + 1)});
  }
  return found;
}

void check_switch(Findings& findings, const Environment& environment, const Switch& one, bool is_installed) {
  const std::string name{one.variable};
  const std::string framework{one.framework};
  const std::string assignment = name + "=" + std::string{one.value};
  const std::string value = value_of(environment, name);
  if (value.find(one.value) != std::string::npos) {
    findings.push_back({Level::ok, "switches", assignment + ": " + framework + " uses the pool as its cache", ""});
  } else if (!value.empty()) {
    findings.push_back({Level::warning, "switches", name + "=" + value + ": " + framework + " keeps a cache of its own",
                        "set " + assignment});
  } else if (is_installed && is_open(environment, one) && !one.is_older_name) {
    findings.push_back({Level::note, "switches", framework + " keeps a cache of its own above the pool",
                        "gpupool run --unify, or " + assignment});
  }
}

}  // namespace

void check_frameworks(Findings& findings, const Environment& environment, const std::vector<std::string>& program) {
  const std::string python = python_of(program);
  std::vector<Installed> found;
  const bool looked = look(findings, "frameworks", [&] {
    if (!python.empty()) found = installed_for(python);
  });
  std::string names;
  for (const Installed& one : found)
    names += (names.empty() ? "" : ", ") + one.module + (one.version.empty() ? "" : " " + one.version);
  if (python.empty()) {
    findings.push_back({Level::note, "frameworks", "not looked for: there is no python3 here", ""});
  } else if (looked) {
    findings.push_back({Level::note, "frameworks",
                        python + " has " + (names.empty() ? "none of torch, jax, tensorflow, paddle, cupy" : names),
                        ""});
  }
  for (const Switch& one : unify_switches()) {
    const bool is_installed = std::ranges::find(found, one.module, &Installed::module) != found.end();
    check_switch(findings, environment, one, is_installed);
  }
  if (std::ranges::find(found, "cupy", &Installed::module) != found.end()) {
    findings.push_back({Level::note, "switches",
                        "CuPy keeps a cache of its own above the pool, and no variable does without",
                        "in the program: cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)"});
  }
}

}  // namespace gpupool::cli
