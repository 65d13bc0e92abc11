// What the command says, where, and in which colour; and the one way in which a verb fails.
// Output is text on standard output, everything about the work itself goes to standard error. Colours only on a
// terminal, and not with NO_COLOR (https://no-color.org). One thread.
#pragma once
#include <exception>
#include <string>
#include <string_view>

#include "cli/verbs.h"

namespace gpupool::cli {

/// Ends the verb: main() prints "gpupool VERB: message" and exits with the status.
class Problem : public std::exception {
 public:
  Problem(Exit status, std::string message) : status_(status), message_(std::move(message)) {}
  Exit status() const { return status_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  Exit status_;
  std::string message_;
};

enum class Stream { out, err };
enum class Colour { plain, strong, good, doubtful, bad };

/// Writes all of it; a Problem when standard output is full or closed. A reader that has gone away (head) ends the
/// process quietly.
void print(std::string_view text);
/// One line on standard error, with "gpupool: " in front.
void note(std::string_view line);

/// Whether the terminal, if there is one, can do more than print (TERM).
bool has_terminal();

std::string coloured(std::string_view text, Colour colour, Stream stream);

/// "first  \n" left-aligned to `width` columns.
std::string padded(std::string_view text, std::size_t width);

/// Without blanks at its end.
std::string trimmed(std::string text);

/// Creates `path`, which must not exist, with this content; never replaces or follows anything. "-" is standard output.
/// Throws a Problem.
void write_new_file(const std::string& path, std::string_view text);

/// A Problem where write_new_file() would have one now: before work that may take hours.
void check_new_file(const std::string& path);

/// strerror, as text.
std::string error_text(int error);

}  // namespace gpupool::cli
