// See source.h.
#include "cli/trace/source.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cli/console.h"
#include "config/text.h"
#include "live/write_all.h"

namespace gpupool::cli {
namespace {

gzFile gz(void* file) { return static_cast<gzFile>(file); }

// zlib puts the name of the file in front, which is a number here.
std::string_view without_name(std::string_view message) {
  const std::size_t colon = message.find(": ");
  return colon == std::string_view::npos ? message : message.substr(colon + 2);
}

[[noreturn]] void refuse(const std::string& path, const std::string& problem) {
  throw Problem(Exit::input, escaped(path, path.size()) + ": " + problem);
}

}  // namespace

void Source::Closer::operator()(void* file) const { gzclose(gz(file)); }

Source::Source(const std::string& path) : path_(path) {
  // A pipe into which nobody writes is empty, rather than something to wait for.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) refuse(path, error_text(errno));
  fcntl(file, F_SETFL, O_RDONLY);
  struct stat status {};
  if (fstat(file, &status) != 0 || S_ISDIR(status.st_mode)) {
    close(file);
    refuse(path, "is a folder");
  }
  start(file);
}

Source::Source(std::string_view bytes, const std::string& name) : path_(name) {
  const int file =
      static_cast<int>(syscall(SYS_memfd_create, "trace", MFD_CLOEXEC));  // glibc 2.17 has no function for it
  if (file < 0) refuse(name, error_text(errno));
  if (!write_all(file, bytes)) {
    close(file);
    refuse(name, "not enough memory on this host");
  }
  lseek(file, 0, SEEK_SET);
  start(file);
}

void Source::start(int file) {
  file_.reset(gzdopen(file, "rb"));
  if (!file_) {
    close(file);
    refuse(path_, "not enough memory on this host");
  }
  buffer_.resize(kPiece);
}

Source::~Source() = default;

/// Moves what is left to the front and reads behind it; false at the end of the file.
bool Source::fill() {
  if (begin_ > 0) std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (end_ == buffer_.size()) return false;
  const int got = gzread(gz(file_.get()), buffer_.data() + end_, static_cast<unsigned>(buffer_.size() - end_));
  int code = Z_OK;
  const char* const message = gzerror(gz(file_.get()), &code);
  if (code == Z_ERRNO) fault_at_offset(error_text(errno));
  if (code == Z_BUF_ERROR && got <= 0) fault_at_offset("the compressed file ends too early");
  if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
    fault_at_offset("the compressed file is damaged (" + std::string{without_name(message)} + ")");
  if (got <= 0) return false;
  end_ += static_cast<std::size_t>(got);
  return true;
}

std::string_view Source::peek(std::size_t bytes) {
  if (bytes > buffer_.size()) buffer_.resize(bytes);
  while (end_ - begin_ < bytes && fill()) {
  }
  return rest().substr(0, bytes);
}

bool Source::line(std::string_view& text) {
  std::size_t looked = 0;
  for (;;) {
    const std::size_t newline = rest().find('\n', looked);
    const bool whole = newline != std::string_view::npos;
    if (!whole && rest().size() <= kLongestLine) {
      looked = rest().size();
      if (fill()) continue;
      if (rest().empty()) return false;
    }
    text = rest().substr(0, newline);
    ++line_;
    if (text.size() > kLongestLine)
      fault_at_line("the line is longer than " + std::to_string(kLongestLine) + " bytes; this is no trace");
    take(text.size() + (whole ? 1 : 0));
    if (text.ends_with('\r')) text.remove_suffix(1);
    return true;
  }
}

std::uint64_t Source::number(unsigned bytes) {
  const std::string_view raw = peek(bytes);
  if (raw.size() < bytes) fault_at_offset("the file ends too early");
  std::uint64_t value = 0;
  for (unsigned i = 0; i < bytes; ++i) value |= std::uint64_t{static_cast<unsigned char>(raw[i])} << (8 * i);
  take(bytes);
  return value;
}

std::string Source::text(std::uint64_t bytes) {
  std::string out;
  while (out.size() < bytes) {
    const std::string_view piece = peek(static_cast<std::size_t>(std::min<std::uint64_t>(bytes - out.size(), kPiece)));
    if (piece.empty()) fault_at_offset("the file ends too early");
    out += piece;
    take(piece.size());
  }
  return out;
}

void Source::fault_at_line(const std::string& problem) const {
  refuse(path_, "line " + std::to_string(line_) + ": " + problem);
}
void Source::fault_at_offset(const std::string& problem) const {
  refuse(path_, "byte " + std::to_string(offset_) + ": " + problem);
}

}  // namespace gpupool::cli
