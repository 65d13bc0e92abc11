// A trace in the form of torch.cuda.memory._dump_snapshot, for the viewer that PyTorch has for it
// (https://pytorch.org/memory_viz): history, segments and the blocks that are left at the end. Frames are empty: nobody
// has recorded the program's stack. A trace does not tell which pieces of a tape were mapped; the segments are what its
// blocks have touched, in pieces of 2 MiB, from the first touch on.
#pragma once
#include <string>
#include <vector>

#include "cli/trace/trace.h"

namespace gpupool::cli {

/// The pickle. A Problem where a trace has no addresses. Each trace is that of another device.
std::string torch_snapshot(const std::vector<Trace>& traces);

}  // namespace gpupool::cli
