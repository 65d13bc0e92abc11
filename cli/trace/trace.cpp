// See trace.h.
#include "cli/trace/trace.h"

#include <algorithm>
#include <utility>

namespace gpupool::cli {

std::uint32_t TraceBuilder::stream_number(std::optional<Name> stream) {
  if (!stream) return kPlain;
  return streams_.try_emplace(*stream, static_cast<std::uint32_t>(streams_.size())).first->second;
}

std::uint32_t TraceBuilder::thread_number(Name thread) {
  return threads_.try_emplace(thread, static_cast<std::uint32_t>(threads_.size())).first->second;
}

std::uint16_t TraceBuilder::call_number(const std::string& name) {
  const auto found = std::ranges::find(trace_.calls, name);
  if (found == trace_.calls.end()) trace_.calls.push_back(name);
  return static_cast<std::uint16_t>(std::ranges::find(trace_.calls, name) - trace_.calls.begin());
}

// Clocks of several processors may differ by a little.
std::uint64_t TraceBuilder::not_before_last(std::uint64_t time_ns) { return last_ns_ = std::max(last_ns_, time_ns); }

void TraceBuilder::add(std::uint64_t bytes, std::uint32_t slot, std::uint32_t stream, const Seen& seen) {
  trace_.events.push_back({bytes, slot, stream, seen});
  trace_.events.back().seen.time_ns = not_before_last(seen.time_ns);
}

void TraceBuilder::mark(Mark mark) {
  mark.event = trace_.events.size();
  mark.time_ns = not_before_last(mark.time_ns);
  trace_.marks.push_back(mark);
}

bool TraceBuilder::allocate(Name block, std::uint64_t bytes, std::optional<Name> stream, const Seen& seen) {
  const auto [entry, fresh] = live_.try_emplace(block);
  if (!fresh) return false;
  if (bytes == 0) return true;
  Block& made = entry->second;
  made.bytes = bytes;
  made.address = seen.address;
  made.served = seen.served;
  made.stream = stream_number(stream);
  if (spare_slots_.empty()) {
    made.slot = trace_.slots++;
  } else {
    made.slot = spare_slots_.back();
    spare_slots_.pop_back();
  }
  add(bytes, made.slot, made.stream, seen);
  ++trace_.requests;
  return true;
}

bool TraceBuilder::free(Name block, std::optional<Name> stream, Seen seen) {
  const auto found = live_.find(block);
  if (found == live_.end()) return false;
  const Block gone = found->second;
  live_.erase(found);
  if (gone.bytes == 0) return true;
  seen.address = gone.address;
  seen.served = gone.served;
  add(0, gone.slot, stream ? stream_number(stream) : gone.stream, seen);
  spare_slots_.push_back(gone.slot);
  return true;
}

Trace TraceBuilder::finish(std::string name, std::string format) {
  trace_.name = std::move(name);
  trace_.format = std::move(format);
  trace_.streams = static_cast<std::uint32_t>(streams_.size());
  trace_.threads = static_cast<std::uint32_t>(threads_.size());
  return std::move(trace_);
}

}  // namespace gpupool::cli
