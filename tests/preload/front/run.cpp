// See run.h. Output goes to temporary files rather than pipes, so that no program can block on a full one.
#include "tests/preload/front/run.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

namespace {

std::string setting(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string contents(std::FILE* file) {
  std::string text;
  std::rewind(file);
  for (int c; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
  return text;
}

[[noreturn]] void become(const Words& words, const Settings& settings, const std::string& folder, std::FILE* out,
                         std::FILE* err) {
  dup2(fileno(out), 1);
  dup2(fileno(err), 2);
  for (int fd = 3; fd < 64; ++fd) close(fd);
  for (const char* name : {"LD_PRELOAD", "GPUPOOL_DISABLE", "LD_LIBRARY_PATH"}) unsetenv(name);
  for (const auto& [name, value] : settings) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  if (chdir(folder.c_str()) == 0) execvp(argv[0], argv.data());
  _exit(127);
}

}  // namespace

bool emulated() { return !setting("GPUPOOL_TEST_EMULATOR").empty(); }
std::string programs() { return setting("GPUPOOL_TEST_PROGRAMS"); }

Said run(const Words& words, const Settings& settings, const std::string& folder) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(std::tmpfile(), std::fclose), err(std::tmpfile(), std::fclose);
  const pid_t child = fork();
  if (child == 0) become(words, settings, folder, out.get(), err.get());
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), contents(out.get()), contents(err.get())};
}

Said run_probe(const Words& words, const std::string& preload, Settings settings, const std::string& folder) {
  settings.insert(settings.begin(), {"LD_LIBRARY_PATH", programs() + "/driver"});
  if (!preload.empty()) settings.emplace_back("LD_PRELOAD", preload);
  Words command = words;
  command[0] = programs() + "/" + command[0];
  if (!emulated()) return run(command, settings, folder);
  Words emulator = {setting("GPUPOOL_TEST_EMULATOR"), "-L", setting("GPUPOOL_TEST_ROOT")};
  for (const auto& [name, value] : settings) emulator.insert(emulator.end(), {"-E", name + "=" + value});
  emulator.insert(emulator.end(), command.begin(), command.end());
  return run(emulator, {}, folder);
}
