// The end of the process: its own live page becomes the report (live/report.h), on stderr and in a file. Runs in the
// core's destructor; makes no CUDA call.
#pragma once

namespace gpupool {

/// Says and writes what was asked for, if this process used device memory at all, and takes the page away.
void finish_process();

}  // namespace gpupool
