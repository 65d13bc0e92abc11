// See finding.h: whether a preload reaches a program. What only shows while it runs, such as plugins loaded with
// RTLD_DEEPBIND, is told from imports where that is possible, and else by the coverage in the report.
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "cli/doctor/finding.h"
#include "cli/elf.h"
#include "config/load.h"
#include "config/processes.h"

namespace gpupool::cli {
namespace {

/// The executable that the kernel starts in the end, behind a chain of scripts.
std::string behind_scripts(std::string path) {
  for (int i = 0; i < kMostInterpreters; ++i) {
    const std::string interpreter = script_interpreter(path);
    if (interpreter.empty()) break;
    path = find_program(interpreter);
  }
  return path;
}

bool is_privileged(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0 && (status.st_mode & (S_ISUID | S_ISGID)) != 0) return true;
  return getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

}  // namespace

void check_program(Findings& findings, const std::string& program) {
  const std::string found = find_program(program);
  const auto add = [&](Level level, std::string says, std::string mend) {
    findings.push_back({level, "program", std::move(says), std::move(mend)});
  };
  if (found.empty())
    return add(Level::broken, program + " is not found, or is not executable", "name it with its path");
  const std::string path = behind_scripts(found);
  if (path.empty())
    return add(Level::broken, found + ": the interpreter that its first line names is not found",
               "install it, or mend the line");
  const ElfFacts facts = elf_facts(path);
  const Options options = load(environ).options;
  const std::string both = path == found ? path : found + ", run by " + path;
  if (!facts.is_elf) return add(Level::warning, both + " is no executable that the loader knows", "");
  if (facts.other_machine)
    return add(Level::broken, both + " is for another processor or word size than libgpupool.so",
               "build libgpupool.so for it");
  if (facts.interpreter.empty())
    return add(Level::broken, both + " is static: no preload reaches it", "link it dynamically");
  if (is_privileged(path))
    return add(Level::broken, both + " runs with more rights than its user: the loader ignores LD_PRELOAD",
               "run it without set-user-ID or capabilities");
  if (!gets_pool(options.processes, path)) {
    return add(Level::warning, both + " is excluded by processes.include or processes.exclude", "change these options");
  }
  if (facts.interpreter.find("ld-musl") != std::string::npos) {
    return add(Level::warning, both + " uses musl: the core cannot be loaded, and the program runs on the plain driver",
               "use an image with glibc");
  }
  if (std::ranges::find(facts.imports, "dlmopen") != facts.imports.end()) {
    return add(Level::warning, both + " uses dlmopen: a preload does not reach what it loads into other namespaces",
               "look at the coverage in the report");
  }
  add(Level::ok, both + " can be preloaded", "");
}

}  // namespace gpupool::cli
