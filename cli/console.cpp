// See console.h.
#include "cli/console.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "config/text.h"
#include "live/write_all.h"

namespace gpupool::cli {
namespace {

constexpr std::string_view kStandardOutput = "-";

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool takes_colours(Stream stream) {
  return isatty(stream == Stream::out ? STDOUT_FILENO : STDERR_FILENO) == 1 && !is_set("NO_COLOR") && has_terminal();
}

std::string_view code_of(Colour colour) {
  switch (colour) {
    case Colour::plain:
      return "";
    case Colour::strong:
      return "\033[1m";
    case Colour::good:
      return "\033[32m";
    case Colour::doubtful:
      return "\033[33m";
    case Colour::bad:
      return "\033[31m";
  }
  return "";
}

int new_file(const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (file >= 0) return file;
  throw Problem(Exit::output, escaped(path, path.size()) + ": " +
                                  (errno == EEXIST ? "exists already and is not overwritten" : error_text(errno)));
}

// A limit on the size of files (ulimit -f) ends a process by a signal, unless that is ignored: then write says so.
class FileLimitTold {
 public:
  FileLimitTold() : before_(std::signal(SIGXFSZ, SIG_IGN)) {}
  ~FileLimitTold() { std::signal(SIGXFSZ, before_); }
  FileLimitTold(const FileLimitTold&) = delete;
  FileLimitTold& operator=(const FileLimitTold&) = delete;

 private:
  void (*before_)(int);
};

}  // namespace

bool has_terminal() { return is_set("TERM") && std::strcmp(std::getenv("TERM"), "dumb") != 0; }

void print(std::string_view text) {
  if (!write_all(STDOUT_FILENO, text)) throw Problem(Exit::output, "standard output: " + error_text(errno));
}

void note(std::string_view line) { write_all(STDERR_FILENO, "gpupool: " + std::string{line} + "\n"); }

std::string coloured(std::string_view text, Colour colour, Stream stream) {
  if (colour == Colour::plain || !takes_colours(stream)) return std::string{text};
  return std::string{code_of(colour)} + std::string{text} + "\033[0m";
}

std::string padded(std::string_view text, std::size_t width) {
  std::string out{text};
  if (out.size() < width) out.resize(width, ' ');
  return out;
}

std::string trimmed(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

void write_new_file(const std::string& path, std::string_view text) {
  if (path == kStandardOutput) return print(text);
  const FileLimitTold told;
  const int file = new_file(path);
  bool complete = write_all(file, text);
  int error = errno;
  if (close(file) != 0) complete = false, error = errno;
  if (complete) return;
  unlink(path.c_str());
  throw Problem(Exit::output, escaped(path, path.size()) + ": " + error_text(error));
}

void check_new_file(const std::string& path) {
  if (path == kStandardOutput) return;
  close(new_file(path));
  unlink(path.c_str());
}

std::string error_text(int error) { return std::strerror(error); }

}  // namespace gpupool::cli
