// The readers of traces: each knows one format and makes the same Trace of it. read_trace() looks at the first bytes.
// Faults are Problems that name file, place and text. Nothing in a file is executed, and what is kept is bounded by its
// size.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "cli/trace/source.h"
#include "cli/trace/trace.h"

namespace gpupool::cli {

/// The device with the most events, where a file holds several; a note says so.
Trace read_trace(const std::string& path);
/// One for each device.
std::vector<Trace> read_traces(const std::string& path);
/// The same from bytes in memory; `name` is what faults and traces call them.
std::vector<Trace> read_traces_from_bytes(std::string_view bytes, const std::string& name);

/// What trace.path recorded.
std::vector<Trace> read_recorded(Source& source);

/// `a,<block>,<bytes>[,<stream>]` and `f,<block>[,<stream>]`; `#` begins a comment. Without a stream: cudaMalloc and
/// cudaFree.
Trace read_csv(Source& source);

/// The CSV log of an RMM logging resource: Thread,Time,Action,Pointer,Size,Stream.
Trace read_rmm(Source& source);

/// The pickle of torch.cuda.memory._dump_snapshot, recorded with history.
Trace read_pytorch_snapshot(Source& source);

}  // namespace gpupool::cli
