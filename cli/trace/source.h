// The bytes of a trace file, decompressed if it is gzip (zlib looks for itself). Reads forward only, in pieces, so that
// the size of a file is nobody's limit. Every fault is a Problem that names the file and the place in it.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gpupool::cli {

class Source {
 public:
  explicit Source(const std::string& path);
  /// Bytes in memory, copied; `name` stands for the path.
  Source(std::string_view bytes, const std::string& name);
  ~Source();
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  const std::string& path() const { return path_; }
  /// Bytes read so far; lines read so far.
  std::uint64_t offset() const { return offset_; }
  std::uint64_t line_number() const { return line_; }

  /// What comes next, without reading it; fewer bytes only at the end.
  std::string_view peek(std::size_t bytes);
  /// Reads this, if it is what comes next.
  void skip(std::string_view expected) {
    if (peek(expected.size()) == expected) take(expected.size());
  }
  /// The next line without its end; false at the end of the file. Valid until the next call. Longer ones than
  /// kLongestLine are faults.
  bool line(std::string_view& text);
  /// The next `bytes` bytes, or a fault.
  std::uint64_t number(unsigned bytes);  // little-endian, at most 8
  std::uint8_t byte() { return static_cast<std::uint8_t>(number(1)); }
  std::string text(std::uint64_t bytes);

  [[noreturn]] void fault_at_line(const std::string& problem) const;
  [[noreturn]] void fault_at_offset(const std::string& problem) const;

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 18;
  static constexpr std::size_t kLongestLine = std::size_t{1} << 14;

  void start(int file);
  bool fill();
  std::string_view rest() const { return std::string_view{buffer_.data() + begin_, end_ - begin_}; }
  void take(std::size_t bytes) { begin_ += bytes, offset_ += bytes; }

  struct Closer {
    void operator()(void* file) const;
  };
  std::string path_;
  std::unique_ptr<void, Closer> file_;  // a gzFile
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t offset_ = 0;
  std::uint64_t line_ = 0;
};

}  // namespace gpupool::cli
