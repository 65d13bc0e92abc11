// A trace as a report: the numbers, the curve and the map of what was recorded; rows that no trace tells are marked as
// not recorded. Where the trace tells no addresses, our own pool places the blocks by a replay, and the numbers are the
// replay's.
#pragma once
#include "cli/report/timeline.h"
#include "cli/trace/trace.h"

namespace gpupool::cli {

struct TraceReport {
  ProcessReport report;
  Timeline timeline;
};
TraceReport report_of(const Trace& trace);

}  // namespace gpupool::cli
