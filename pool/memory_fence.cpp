// See memory_fence.h.
#include "pool/memory_fence.h"

#include <algorithm>
#include <utility>

namespace gpupool {
namespace {

void join(MemoryFence::Point& into, const MemoryFence::Point& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

bool includes(const MemoryFence::Point& whole, const MemoryFence::Point& part) {
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (part[i] > (i < whole.size() ? whole[i] : 0)) return false;
  }
  return true;
}

}  // namespace

EventId MemoryFence::make_event() {
  if (refused(Operation::kMakeEvent) || events_.size() >= options_.max_events) return kNoEvent;
  events_.emplace_back();
  return static_cast<EventId>(events_.size() - 1);
}

RecordResult MemoryFence::record(StreamRef line, EventId event) {
  if (refused(Operation::kRecord)) return RecordResult::kFailed;
  if (line != kWholeContext) {
    const Stream& stream = streams_[stream_index(line)];
    if (stream.capturing) return RecordResult::kNotNow;
    events_[event] = stream.reached;
    return RecordResult::kRecorded;
  }
  if (capturing()) return RecordResult::kNotNow;
  if (!options_.context_events) {
    complete(point_of(kWholeContext));
    events_[event].clear();
    return RecordResult::kComplete;
  }
  events_[event] = point_of(kWholeContext);
  return RecordResult::kRecorded;
}

bool MemoryFence::wait(StreamRef line, EventId event) {
  Stream& stream = streams_[stream_index(line)];
  if (refused(Operation::kWait) || stream.capturing) return false;
  join(stream.reached, events_[event]);
  return true;
}

Progress MemoryFence::query(EventId event) {
  if (refused(Operation::kQuery)) return Progress::kUnknown;
  if (is_complete(events_[event])) return Progress::kDone;
  if (options_.looks_until_done != 0 && ++looks_ % options_.looks_until_done == 0) complete(events_[event]);
  return Progress::kPending;
}

bool MemoryFence::wait_on_host(EventId event, unsigned) {
  if (refused(Operation::kHostWait)) return false;
  if (options_.host_wait_helps) complete(events_[event]);
  return is_complete(events_[event]);
}

int MemoryFence::take_error() { return std::exchange(error_, 0); }

MemoryFence::Point MemoryFence::submit(StreamRef stream) {
  const std::size_t own = stream_index(stream);
  Point& reached = streams_[own].reached;
  if (reached.size() <= own) reached.resize(own + 1);
  ++reached[own];
  return reached;
}

MemoryFence::Point MemoryFence::point_of(StreamRef line) const {
  if (line != kWholeContext) {
    const Stream* stream = find(line);
    return stream ? stream->reached : Point{};
  }
  Point all;
  for (const Stream& stream : streams_) join(all, stream.reached);
  return all;
}

void MemoryFence::complete(const Point& point) { join(completed_, point); }

bool MemoryFence::ordered_behind(StreamRef stream, const Point& point) const {
  return includes(point_of(stream), point);
}

bool MemoryFence::safe_after(StreamRef stream, const Point& point) const {
  Point known = point_of(stream);
  join(known, completed_);
  return includes(known, point);
}

bool MemoryFence::is_complete(const Point& point) const { return includes(completed_, point); }

void MemoryFence::begin_capture(StreamRef stream) { streams_[stream_index(stream)].capturing = true; }

void MemoryFence::end_captures() {
  for (Stream& stream : streams_) stream.capturing = false;
}

void MemoryFence::refuse(Operation operation, std::uint64_t nth, int code, std::uint64_t times) {
  orders_[index(operation)] = {calls(operation) + nth, times, code};
}

/// Counts a call; true if it was ordered to fail.
bool MemoryFence::refused(Operation operation) {
  const std::uint64_t call = ++calls_[index(operation)];
  const Order& order = orders_[index(operation)];
  if (call < order.call || call - order.call >= order.times) return false;
  error_ = order.code;
  return true;
}

std::size_t MemoryFence::stream_index(StreamRef stream) {
  const auto [entry, fresh] = indices_.try_emplace(stream, streams_.size());
  if (fresh) streams_.push_back({});
  return entry->second;
}

const MemoryFence::Stream* MemoryFence::find(StreamRef stream) const {
  const auto found = indices_.find(stream);
  return found == indices_.end() ? nullptr : &streams_[found->second];
}

bool MemoryFence::capturing() const {
  return std::any_of(streams_.begin(), streams_.end(), [](const Stream& stream) { return stream.capturing; });
}

}  // namespace gpupool
