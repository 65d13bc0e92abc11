// See read.h: the log of RMM (https://github.com/rapidsai/rmm, logging_resource_adaptor). Blocks are known by their
// addresses. A log may begin in the middle of a program's life, so frees of unknown addresses are counted and left out.
#include "cli/trace/fields.h"
#include "cli/trace/read.h"
#include "config/text.h"

namespace gpupool::cli {

Trace read_rmm(Source& source) {
  TraceBuilder builder;
  std::vector<std::string_view> fields;
  std::uint64_t unknown = 0;
  std::uint64_t refused = 0;
  const auto number = [&](std::size_t field, int base, const char* what) {
    const std::optional<std::uint64_t> value = number_in(fields[field], base);
    if (!value) source.fault_at_line(in_quotes(fields[field]) + " is no " + what);
    return *value;
  };
  std::string_view line;
  source.line(line);
  split_fields(line, fields);
  if (fields != std::vector<std::string_view>{"Thread", "Time", "Action", "Pointer", "Size", "Stream"}) {
    source.fault_at_line(in_quotes(line) + " is not the head of an RMM log: Thread,Time,Action,Pointer,Size,Stream");
  }
  while (source.line(line)) {
    if (without_blanks(line).empty()) continue;
    split_fields(line, fields);
    if (fields.size() != 6) source.fault_at_line(in_quotes(line) + " has not the 6 fields of an RMM log");
    if (fields[2] == "allocate failure") {
      ++refused;
      continue;
    }
    const std::uint64_t pointer = number(3, 16, "pointer");
    const std::uint64_t bytes = number(4, 10, "number of bytes");
    const std::uint64_t stream = number(5, 16, "stream");
    if (bytes > kLargestRequest) source.fault_at_line(in_quotes(fields[4]) + " bytes are more than any card has");
    if (fields[2] == "allocate") {
      if (!builder.allocate(pointer, bytes, stream)) source.fault_at_line(in_quotes(fields[3]) + " is live already");
    } else if (fields[2] == "free") {
      if (!builder.free(pointer, stream)) ++unknown;
    } else {
      source.fault_at_line(in_quotes(fields[2]) + " is no action of an RMM log (allocate, free, allocate failure)");
    }
  }
  if (unknown > 0) builder.note(std::to_string(unknown) + " frees of blocks from before the log are left out");
  if (refused > 0) builder.note(std::to_string(refused) + " requests that failed are left out");
  return builder.finish(source.path(), "rmm");
}

}  // namespace gpupool::cli
