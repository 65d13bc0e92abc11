// See trace.h.
#include "cli/trace/trace.h"

#include <utility>

namespace gpupool::cli {
std::uint32_t TraceBuilder::stream_number(std::optional<Name> stream) {
  if (!stream) return kPlain;
  return streams_.try_emplace(*stream, static_cast<std::uint32_t>(streams_.size())).first->second;
}

bool TraceBuilder::allocate(Name block, std::uint64_t bytes, std::optional<Name> stream) {
  const auto [entry, fresh] = live_.try_emplace(block);
  if (!fresh) return false;
  if (bytes == 0) return true;
  Block& made = entry->second;
  made.bytes = bytes;
  made.stream = stream_number(stream);
  if (spare_slots_.empty()) {
    made.slot = trace_.slots++;
  } else {
    made.slot = spare_slots_.back();
    spare_slots_.pop_back();
  }
  trace_.events.push_back({bytes, made.slot, made.stream});
  ++trace_.requests;
  return true;
}

bool TraceBuilder::free(Name block, std::optional<Name> stream) {
  const auto found = live_.find(block);
  if (found == live_.end()) return false;
  const Block gone = found->second;
  live_.erase(found);
  if (gone.bytes == 0) return true;
  trace_.events.push_back({0, gone.slot, stream ? stream_number(stream) : gone.stream});
  spare_slots_.push_back(gone.slot);
  return true;
}

Trace TraceBuilder::finish(std::string name, std::string format) {
  trace_.name = std::move(name);
  trace_.format = std::move(format);
  trace_.streams = static_cast<std::uint32_t>(streams_.size());
  return std::move(trace_);
}

}  // namespace gpupool::cli
