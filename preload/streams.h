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

/// Where a request of `bytes` on this stream goes. `stream` is named(). The stream is not capturing.
StreamSpot spot_of(const Guard& guard, CUstream stream, std::uint64_t bytes);

/// The stream's line on the tape of `home`, which may belong to another context than the stream: then, or where that is
/// not known, StreamSpot::home is null. kNoLine: there is no such stream.
StreamSpot line_on(const Guard& guard, Home& home, CUstream stream);

/// Is the stream part of a capture? Asks the driver only while one is open in the process.
inline bool captures_stream(CUstream stream) {
  return process().captures.any_open() && is_capturing(setup().api, stream);
}

/// The sticky error of the stream's context, or success: the cheapest call that tells, as a request that the pool can
/// serve makes none. Not asked while a capture is open, nor within a microsecond of the last answer in that context,
/// where `own`, the home of the stream's own context, is known.
CUresult ask_for_fault(CUstream stream, Home* own);
inline CUresult fault_on(CUstream stream, Home* own) {
  return own && own->was_sound() ? CUDA_SUCCESS : ask_for_fault(stream, own);
}

/// Before the driver destroys the stream: what it freed belongs to anyone from now on.
void stream_ending(const Guard& guard, CUstream stream);

}  // namespace gpupool
