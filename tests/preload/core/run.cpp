// See run.h. The places come from the build: GPUPOOL_TEST_PROGRAM, GPUPOOL_TEST_FRONT, GPUPOOL_TEST_DRIVER.
#include "tests/preload/core/run.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace gpupool::tests {
namespace {

// Each program has its live page in a folder of its own: tests beside it are no neighbours on its card.
std::vector<std::string> environment_of(const Environment& settings, Preload preload, const Folder& folder) {
  Environment all{{"LD_LIBRARY_PATH", GPUPOOL_TEST_DRIVER},
                  {"GPUPOOL_SIM_MEMORY", "4GiB"},
                  {"GPUPOOL_SIM_DEVICES", "2"},
                  {"GPUPOOL_STATS_PAGES", folder / ""},
                  {"PATH", "/usr/bin:/bin"}};
  if (preload == Preload::kFront) all["LD_PRELOAD"] = GPUPOOL_TEST_FRONT;
  for (const auto& [name, value] : settings) all[name] = value;
  std::vector<std::string> lines;
  for (const auto& [name, value] : all) lines.push_back(name + "=" + value);
  return lines;
}

}  // namespace

Outcome run_case(const std::string& name, const Environment& settings, Preload preload) {
  return run_program({GPUPOOL_TEST_PROGRAM, name}, settings, preload);
}

pid_t start_program(std::vector<std::string> words, const Environment& settings, Preload preload,
                    const Folder& folder) {
  const std::string out = folder / "out";
  const std::string err = folder / "err";
  std::vector<std::string> lines = environment_of(settings, preload, folder);
  std::vector<char*> environment;
  for (std::string& line : lines) environment.push_back(line.data());
  environment.push_back(nullptr);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // some programs would go on for ever
    if (!freopen(out.c_str(), "w", stdout) || !freopen(err.c_str(), "w", stderr)) _exit(126);
    execve(arguments[0], arguments.data(), environment.data());
    _exit(127);
  }
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void wait_while_running(pid_t child, const std::function<bool()>& condition) {
  while (!condition()) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) != 0) throw std::runtime_error("the program has ended too early");
    usleep(200);
  }
}

Outcome run_program(std::vector<std::string> words, const Environment& settings, Preload preload) {
  const Folder folder;
  const int status = wait_for(start_program(std::move(words), settings, preload, folder));
  return {status, read_file(folder / "out"), read_file(folder / "err")};
}

Folder::Folder() : Folder(std::filesystem::temp_directory_path().string()) {}

Folder::Folder(const std::string& parent) {
  std::string pattern = parent + "/gpupool-test-XXXXXX";
  if (!mkdtemp(pattern.data())) throw std::runtime_error("no temporary folder");
  path_ = pattern;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::string> Folder::files() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace gpupool::tests
