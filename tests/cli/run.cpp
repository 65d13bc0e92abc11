// See run.h.
#include "tests/cli/run.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace gpupool::tests {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

Outcome command(const std::vector<std::string>& words, const Variables& variables) {
  const Folder folder;
  const std::string out = folder / "out";
  const std::string err = folder / "err";
  std::vector<std::string> line{GPUPOOL_TEST_COMMAND};
  line.insert(line.end(), words.begin(), words.end());
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  if (!variables.contains("PATH")) environment.push_back("PATH=/usr/bin:/bin");
  if (!variables.contains("LD_LIBRARY_PATH")) environment.push_back("LD_LIBRARY_PATH=" GPUPOOL_TEST_NO_DRIVER);
  const pid_t child = fork();
  if (child == 0) {
    if (!freopen("/dev/null", "r", stdin) || !freopen(out.c_str(), "w", stdout) || !freopen(err.c_str(), "w", stderr))
      _exit(126);
    execve(line.front().c_str(), pointers(line).data(), pointers(environment).data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_text(out), read_text(err)};
}

Folder::Folder() {
  std::string pattern = std::filesystem::temp_directory_path() / "gpupool-test-XXXXXX";
  if (!mkdtemp(pattern.data())) throw std::runtime_error("no temporary folder");
  path_ = pattern;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string Folder::file(const std::string& name, std::string_view content) const {
  const std::string path = *this / name;
  std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
  return path;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string source_path(const std::string& relative) { return std::string{GPUPOOL_SOURCE_DIR} + "/" + relative; }

}  // namespace gpupool::tests
