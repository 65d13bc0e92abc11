// See probe.h.
#include "cli/doctor/probe.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/console.h"

namespace gpupool::cli {
namespace {

constexpr char kLoaded = '+';
constexpr char kRefused = '-';

[[noreturn]] void load_and_tell(const std::string& name, std::string (*look)(void*), int to) {
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  std::string answer{library ? kLoaded : kRefused};
  if (library == nullptr) {
    answer += dlerror();
  } else if (look != nullptr) {
    answer += look(library);
  }
  const ssize_t told = write(to, answer.data(), answer.size());
  _exit(told == static_cast<ssize_t>(answer.size()) ? 0 : 1);
}

}  // namespace

Probe probe_library(const std::string& name, std::string (*look)(void* library)) {
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return {false, error_text(errno)};
  const pid_t child = fork();
  if (child < 0) {
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    return {false, error_text(errno)};
  }
  if (child == 0) load_and_tell(name, look, pipe_ends[1]);
  close(pipe_ends[1]);
  std::string answer;
  char piece[512];
  for (ssize_t got = 0; (got = read(pipe_ends[0], piece, sizeof piece)) > 0;)
    answer.append(piece, static_cast<std::size_t>(got));
  close(pipe_ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (answer.empty()) {
    return {false, WIFSIGNALED(status) ? std::string{"loading it ends the process: "} + strsignal(WTERMSIG(status))
                                       : "loading it ends the process"};
  }
  return {answer.front() == kLoaded, answer.substr(1)};
}

}  // namespace gpupool::cli
