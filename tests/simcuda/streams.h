// Stream handles, and the one way by which work reaches a stream.
#pragma once

#include "tests/simcuda/state.h"

namespace gpupool::sim {

// The stream behind a handle: one that was made, CU_STREAM_LEGACY or CU_STREAM_PER_THREAD of the current context (never
// 0: the entry points say which of the two 0 means).
CUresult find_stream(CUstream handle, Stream*& out);

// Queues the work, or captures it as a node of this type. `submitted` (may be null) gets the operation, none in a
// capture.
CUresult submit(CUstream handle, CUgraphNodeType type, Work work, OpRef* submitted = nullptr);

// Makes the streams a context starts with.
StreamRef make_stream(Context& context, StreamKind kind, unsigned flags, int priority);
CUstream make_stream_handle(const StreamRef& stream);
// Forgets all handles of the context's streams.
void drop_streams(Context& context);

}  // namespace gpupool::sim
