// See launch.h.
#include "cli/launch.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "cli/console.h"
#include "cli/libraries.h"
#include "cli/processes.h"
#include "config/table.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

constexpr char kPreload[] = "LD_PRELOAD";
constexpr std::chrono::milliseconds kBetweenLooks{2};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

int start(std::vector<std::string> program, const Environment& environment) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  execvpe(program.front().c_str(), pointers(program).data(), pointers(variables).data());
  return errno;
}

Problem refusal(const std::string& program, int error) {
  const bool missing = error == ENOENT || error == ENOTDIR;
  return {missing ? Exit::not_found : Exit::not_executable,
          (program.empty() ? in_quotes(program) : escaped(program, program.size())) + ": " + error_text(error)};
}

}  // namespace

Environment own_environment() {
  Environment copy;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text{*entry};
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    copy.emplace(text.substr(0, equals), text.substr(equals + 1));  // of two the first counts, as for getenv
  }
  return copy;
}

std::string value_of(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string{} : found->second;
}

const std::vector<Switch>& unify_switches() {
  static const std::vector<Switch> switches{
      {"PyTorch", "PYTORCH_ALLOC_CONF", "backend:cudaMallocAsync", "PYTORCH_CUDA_ALLOC_CONF", false, "torch",
       "libc10_cuda.so"},
      {"PyTorch before 2.9", "PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync", "PYTORCH_ALLOC_CONF", true, "torch"},
      {"JAX", "XLA_PYTHON_CLIENT_ALLOCATOR", "cuda_async", "", false, "jax", "xla_cuda_plugin.so"},
      {"JAX", "XLA_PYTHON_CLIENT_PREALLOCATE", "false", "", false, "jax"},
      {"TensorFlow", "TF_GPU_ALLOCATOR", "cuda_malloc_async", "", false, "tensorflow", "libtensorflow_framework.so"},
      {"PaddlePaddle", "FLAGS_use_cuda_malloc_async_allocator", "1", "", false, "paddle", "libpaddle.so"},
  };
  return switches;
}

bool is_open(const Environment& environment, const Switch& one) {
  return !environment.contains(std::string{one.variable}) &&
         (one.not_beside.empty() || !environment.contains(std::string{one.not_beside}));
}

std::vector<std::string> unify(Environment& environment) {
  const Environment before = environment;
  std::vector<std::string> lines;
  for (const Switch& one : unify_switches()) {
    const std::string name{one.variable};
    if (before.contains(name)) {
      if (value_of(before, name) != one.value) {
        lines.push_back("kept " + name + "=" + escaped(value_of(before, name)) + " (" + std::string{one.framework} +
                        "), which was set already");
      }
    } else if (is_open(before, one)) {
      environment[name] = one.value;
      lines.push_back("set " + name + "=" + std::string{one.value} + " (" + std::string{one.framework} + ")");
    }
  }
  return lines;
}

void set(Environment& environment, const Setting& setting) {
  environment[environment_name(setting.key)] = setting.value;
}

void prepare(Environment& environment, std::string_view verb, const Arguments& arguments) {
  for (const Setting& setting : settings_of(verb, arguments)) {
    if (find_option(setting.key) == nullptr) {
      throw Problem(Exit::usage,
                    "--set: " + escaped(setting.key) + " holds for one device; write it into a file for --config");
    }
    set(environment, setting);
  }
  if (arguments.has("--config")) {
    const std::string file = arguments.value("--config");
    loaded_from(file);
    environment["GPUPOOL_CONFIG"] = std::filesystem::absolute(file).string();
  }
  environment[kPreload] = preload_list(find_front(arguments.value("--library")), value_of(environment, kPreload));
}

void become(const std::vector<std::string>& program, const Environment& environment) {
  throw refusal(program.front(), start(program, environment));
}

int run_and_wait(const std::vector<std::string>& program, const Environment& environment, const std::string& mark,
                 const Watch& watch) {
  int error_pipe[2];
  if (pipe2(error_pipe, O_CLOEXEC) != 0) throw Problem(Exit::broken, error_text(errno));
  const pid_t child = fork();
  if (child < 0) throw Problem(Exit::broken, error_text(errno));
  if (child == 0) {
    const int error = start(program, environment);
    const ssize_t told = write(error_pipe[1], &error, sizeof error);
    _exit(told == sizeof error ? 127 : 126);
  }
  SignalsOfOthers others;
  close(error_pipe[1]);
  int error = 0;
  const bool refused = read(error_pipe[0], &error, sizeof error) == sizeof error;
  close(error_pipe[0]);
  int status = 0;
  bool stopped = false;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  while (waitpid(child, &status, WNOHANG) == 0) {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    for (const int signal : {watch(seconds), others.due(seconds)}) {
      if (signal == 0) continue;
      send_to_all(child, mark, signal);
      stopped = true;
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
  if (refused) throw refusal(program.front(), error);
  if (stopped && !mark.empty()) end_what_is_left(mark);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace gpupool::cli
