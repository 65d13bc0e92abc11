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

std::vector<Trace> read_any(Source& source) {
  const std::string_view start = source.peek(8);
  if (start.empty()) throw Problem(Exit::input, escaped(source.path(), source.path().size()) + ": is empty");
  if (start.size() == 8 && std::memcmp(start.data(), &kTraceFileMagic, 8) == 0) return read_recorded(source);
  if (start.size() > 1 && start[0] == '\x80' && start[1] >= 2 && start[1] <= 5)
    return one(read_pytorch_snapshot(source));
  if (start.starts_with("Thread,")) return one(read_rmm(source));
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
