// What the page draws over time, whatever it was recorded by: a curve, marks on it, and where blocks lay.
// Values; times never go back.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cli/report/file.h"

namespace gpupool::cli {

enum class TimeUnit { microseconds, events };
enum class TimelineMarkKind { growth_steps, migrations, fences, oom };

struct TimelineMark {
  std::uint64_t time = 0;
  TimelineMarkKind kind = TimelineMarkKind::growth_steps;
  std::uint64_t count = 0;
};

struct BlockSpan {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t address = 0;  // from the lowest one
  std::uint64_t bytes = 0;
};

struct Timeline {
  TimeUnit unit = TimeUnit::microseconds;
  std::uint64_t limit = 0;  // of all pools together; 0: not known
  std::vector<std::uint64_t> time;
  std::vector<std::uint64_t> reserved;
  std::vector<std::uint64_t> live;
  std::vector<TimelineMark> marks;
  std::vector<BlockSpan> blocks;
  std::string note;  // how the map came about
};

/// From the curve of a report, which has no blocks.
Timeline timeline_of(const ProcessReport& report);

}  // namespace gpupool::cli
