// See read.h: the log of RMM (https://github.com/rapidsai/rmm, logging_resource_adaptor). Blocks are known by their
// addresses. A log may begin in the middle of a program's life, so frees of unknown addresses are counted and left out.
#include "cli/trace/fields.h"
#include "cli/trace/read.h"
#include "config/text.h"

namespace gpupool::cli {
namespace {

constexpr std::uint64_t kDay = 86'400'000'000'000;  // nanoseconds; a log may pass midnight once
constexpr std::hash<std::string_view> hash;         // threads are numbers or names

}  // namespace

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
  std::optional<std::uint64_t> first;  // time of day of the first line
  bool timed = true;
  const auto seen = [&](std::uint64_t address) {
    const std::optional<std::uint64_t> time = time_of_day_in(fields[1]);
    timed = timed && time;
    if (!first) first = time;
    const std::uint64_t since = time && first ? (*time >= *first ? *time - *first : *time + kDay - *first) : 0;
    return Seen{.time_ns = since, .address = address, .thread = builder.thread_number(hash(fields[0]))};
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
      if (!builder.allocate(pointer, bytes, stream, seen(pointer)))
        source.fault_at_line(in_quotes(fields[3]) + " is live already");
    } else if (fields[2] == "free") {
      if (!builder.free(pointer, stream, seen(pointer))) ++unknown;
    } else {
      source.fault_at_line(in_quotes(fields[2]) + " is no action of an RMM log (allocate, free, allocate failure)");
    }
  }
  if (unknown > 0) builder.note(std::to_string(unknown) + " frees of blocks from before the log are left out");
  if (refused > 0) builder.note(std::to_string(refused) + " requests that failed are left out");
  builder.trace().timed = timed;
  builder.trace().placed = true;
  return builder.finish(source.path(), "rmm");
}

}  // namespace gpupool::cli
