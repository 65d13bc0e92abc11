// See timeline.h.
#include "cli/report/timeline.h"

namespace gpupool::cli {
namespace {

struct MarkColumn {
  TimelineMarkKind kind;
  std::uint64_t CurveReport::*total;
};
constexpr MarkColumn kMarkColumns[] = {
    {TimelineMarkKind::growth_steps, &CurveReport::growth_steps},
    {TimelineMarkKind::migrations, &CurveReport::migrations},
    {TimelineMarkKind::fences, &CurveReport::fences},
    {TimelineMarkKind::oom, &CurveReport::oom},
};

}  // namespace

Timeline timeline_of(const ProcessReport& report) {
  Timeline timeline;
  for (const PoolReport& pool : report.pools) timeline.limit += pool.limit;
  CurveReport before;
  for (const CurveReport& point : report.curve) {
    const std::uint64_t time = point.ms * 1000;
    timeline.time.push_back(time);
    timeline.reserved.push_back(point.reserved);
    timeline.live.push_back(point.live);
    for (const MarkColumn& column : kMarkColumns) {
      const std::uint64_t total = point.*column.total;
      if (total > before.*column.total) timeline.marks.push_back({time, column.kind, total - before.*column.total});
    }
    before = point;
  }
  return timeline;
}

}  // namespace gpupool::cli
