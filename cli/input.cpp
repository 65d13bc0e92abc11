// See input.h.
#include "cli/input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "cli/console.h"
#include "config/text.h"

namespace gpupool::cli {

std::string read_input(const std::string& path, std::size_t most) {
  const auto refuse = [&](const std::string& why) {
    throw Problem(Exit::input, escaped(path, path.size()) + ": " + why);
  };
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) refuse(error_text(errno));
  fcntl(file, F_SETFL, O_RDONLY);  // whoever writes into a pipe is waited for
  struct stat status {};
  std::string text;
  int error = fstat(file, &status) == 0 ? 0 : errno;
  const bool is_text = S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode);
  char piece[1 << 16];
  while (error == 0 && is_text && text.size() <= most) {
    const ssize_t got = read(file, piece, sizeof piece);
    if (got < 0) error = errno;
    if (got <= 0) break;
    text.append(piece, static_cast<std::size_t>(got));
  }
  close(file);
  if (error != 0) refuse(error_text(error));
  if (S_ISDIR(status.st_mode)) refuse("is a folder");
  if (!is_text) refuse("is no regular file");
  if (text.empty()) refuse("is empty");
  if (text.size() > most) refuse("is larger than " + readable(most));
  return text;
}

}  // namespace gpupool::cli
