// From the stream of a call to a pool's time line. A handle may mean another stream in every thread (per-thread
// default) and context (default streams), and may be used again after a destroy; hence the thread-local cache of one
// entry is keyed by all of these and by the registry's epoch.
#pragma once

#include "preload/guard.h"
#include "preload/home.h"
#include "preload/process.h"

namespace gpupool {

/// Which spelling was called: what stream 0 means there.
enum class Flavour : std::uint8_t { kLegacy, kPerThread };

/// Stream 0 by its own name, CU_STREAM_LEGACY or CU_STREAM_PER_THREAD; other handles as they are.
inline CUstream named(CUstream stream, Flavour flavour) {
  if (stream) return stream;
  return flavour == Flavour::kPerThread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

/// A default stream where no context is current.
constexpr Line kNoLine = ~Line{0};

struct StreamSpot {
  Home* home = nullptr;  // of the stream's own context; null: none
  Line line = kContextLine;
};

/// The calling thread's last stream and what was found for it.
struct LastStream {
  CUstream stream;
  CUcontext current;  // for the default streams only
  std::uint64_t epoch;
  Home* home;
  Line line;
  bool own;  // home is that of the stream's context

  /// One that means the same stream in every context.
  bool is(CUstream wanted) const {
    return stream == wanted && !is_default_stream(wanted) && epoch == gpupool::epoch.load(std::memory_order_acquire);
  }
};
inline __thread LastStream last_stream = {nullptr, nullptr, 0, nullptr, kContextLine, false};

/// Where a request of `bytes` on this stream goes. `stream` is named(). The stream is not capturing.
StreamSpot find_spot(const Guard& guard, CUstream stream, std::uint64_t bytes);
inline StreamSpot spot_of(const Guard& guard, CUstream stream, std::uint64_t bytes) {
  const LastStream& last = last_stream;
  if (last.is(stream) && last.own) [[likely]]
    return {last.home, last.line};
  return find_spot(guard, stream, bytes);
}

/// The stream's line on the tape of `home`, which may belong to another context than the stream: then, or where that is
/// not known, StreamSpot::home is null. kNoLine: there is no such stream.
StreamSpot find_line(const Guard& guard, Home& home, CUstream stream);
inline StreamSpot line_on(const Guard& guard, Home& home, CUstream stream) {
  const LastStream& last = last_stream;
  if (last.is(stream) && last.home == &home) [[likely]]
    return {last.own ? &home : nullptr, last.line};
  return find_line(guard, home, stream);
}

/// Is the stream part of a capture? Asks the driver only while one is open in the process.
inline bool captures_stream(CUstream stream) {
  return process().captures.any_open() && is_capturing(setup().api, stream);
}

/// The sticky error of the stream's context, or success: the cheapest call that tells, as a request that the pool can
/// serve makes none. Not asked while a capture is open, nor within a microsecond of the last answer in that context,
/// where `own`, the home of the stream's own context, is known.
CUresult ask_for_fault(CUstream stream, Home* own, std::uint64_t now);
inline CUresult fault_on(CUstream stream, Home* own) {
  const std::uint64_t now = own ? own->ticks() : 0;
  if (own && own->was_sound(now)) [[likely]]
    return CUDA_SUCCESS;
  return ask_for_fault(stream, own, now);
}

/// Before the driver destroys the stream: what it freed belongs to anyone from now on.
void stream_ending(const Guard& guard, CUstream stream);

}  // namespace gpupool
