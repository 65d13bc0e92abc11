// See read.h.
#include "cli/trace/read.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cli/console.h"
#include "config/text.h"
#include "pool/trace_format.h"

namespace gpupool::cli {
namespace {

std::vector<Trace> one(Trace trace) {
  std::vector<Trace> all;
  all.push_back(std::move(trace));
  return all;
}

bool is_text(char c) { return (c >= ' ' && c <= '~') || c == '\t' || c == '\r' || c == '\n'; }

std::vector<Trace> read_any(Source& source) {
  const auto refuse = [&](const char* problem) {
    throw Problem(Exit::input, escaped(source.path(), source.path().size()) + ": " + problem);
  };
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // as Excel and Notepad put in front of text
  source.skip(kByteOrderMark);
  const std::string_view start = source.peek(8);
  if (start.empty()) refuse("is empty");
  if (start.size() == 8 && std::memcmp(start.data(), &kTraceFileMagic, 8) == 0) return read_recorded(source);
  if (start.size() > 1 && start[0] == '\x80' && start[1] >= 2 && start[1] <= 5)
    return one(read_pytorch_snapshot(source));
  if (start.starts_with("Thread,")) return one(read_rmm(source));
  if (!std::ranges::all_of(start, is_text))
    refuse("is no trace: neither a recorded one, nor CSV, RMM's log or PyTorch's snapshot");
  if (start.starts_with('{')) refuse("is JSON and no trace; if it is a report, gpupool report shows it");
  return one(read_csv(source));
}

}  // namespace

std::vector<Trace> read_traces(const std::string& path) {
  Source source(path);
  return read_any(source);
}

std::vector<Trace> read_traces_from_bytes(std::string_view bytes, const std::string& name) {
  Source source(bytes, name);
  return read_any(source);
}

Trace read_trace(const std::string& path) {
  std::vector<Trace> all = read_traces(path);
  const auto busiest = std::ranges::max_element(all, {}, [](const Trace& trace) { return trace.events.size(); });
  if (all.size() > 1) {
    busiest->notes.push_back("of " + std::to_string(all.size()) + " devices, device " +
                             std::to_string(busiest->origin.device) + " is read, which has most events");
  }
  return std::move(*busiest);
}

}  // namespace gpupool::cli
