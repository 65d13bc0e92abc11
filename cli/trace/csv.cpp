// See read.h: gpupool's own CSV.
#include "cli/trace/fields.h"
#include "cli/trace/read.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

class Reader {
 public:
  explicit Reader(Source& source) : source_(source) {}

  Trace read() {
    std::string_view line;
    while (source_.line(line)) {
      line = without_blanks(line);
      if (line.empty() || line.starts_with('#')) continue;
      split_fields(line, fields_);
      if (fields_[0] == "a") {
        allocate(line);
      } else if (fields_[0] == "f") {
        free(line);
      } else {
        source_.fault_at_line(in_quotes(line.substr(0, 40)) + " is neither a,BLOCK,BYTES,STREAM nor f,BLOCK");
      }
    }
    return builder_.finish(source_.path(), "csv");
  }

 private:
  std::uint64_t number(std::size_t field, const char* what) {
    const std::optional<std::uint64_t> value = number_in(fields_[field]);
    if (!value) source_.fault_at_line(in_quotes(fields_[field]) + " is no " + what);
    return *value;
  }

  std::optional<std::uint64_t> stream(std::size_t field) {
    if (fields_.size() <= field || fields_[field].empty()) return std::nullopt;
    return number(field, "stream number");
  }

  void allocate(std::string_view line) {
    if (fields_.size() < 3 || fields_.size() > 4)
      source_.fault_at_line(in_quotes(line) + " is not a,BLOCK,BYTES,STREAM");
    const std::uint64_t block = number(1, "block number");
    const std::uint64_t bytes = number(2, "number of bytes");
    if (bytes > kLargestRequest) source_.fault_at_line(in_quotes(fields_[2]) + " bytes are more than any card has");
    if (!builder_.allocate(block, bytes, stream(3)))
      source_.fault_at_line("block " + std::to_string(block) + " is live already");
  }

  void free(std::string_view line) {
    if (fields_.size() < 2 || fields_.size() > 3) source_.fault_at_line(in_quotes(line) + " is not f,BLOCK");
    const std::uint64_t block = number(1, "block number");
    if (!builder_.free(block, stream(2)))
      source_.fault_at_line("block " + std::to_string(block) + " is freed and not live");
  }

  Source& source_;
  TraceBuilder builder_;
  std::vector<std::string_view> fields_;
};

}  // namespace

Trace read_csv(Source& source) { return Reader(source).read(); }

}  // namespace gpupool::cli
