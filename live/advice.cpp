// What the report recommends: pool.size for the next run, and when to think of pool.reuse=sync.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "config/bytes.h"
#include "config/text.h"
#include "live/report.h"

namespace gpupool {

Advice advise(std::uint64_t needed_peak, std::uint64_t live_peak, std::uint64_t most) {
  if (needed_peak == 0) return {0, "the pool was not needed"};
  const double factor = std::clamp(1.1 + share_lost(live_peak, needed_peak), 1.1, 1.3);
  const std::uint64_t step = needed_peak < 1_GiB ? 64_MiB : 256_MiB;
  const auto wanted = static_cast<std::uint64_t>(std::ceil(double(needed_peak) * factor));
  const std::uint64_t size = (wanted + step - 1) / step * step;
  char percent[16];
  std::snprintf(percent, sizeof percent, "%.0f%%", (factor - 1) * 100);
  if (most != 0 && size > most) return {most, "peak need " + readable(needed_peak) + ", and no more than pool.max"};
  return {size, "peak need " + readable(needed_peak) + " and " + percent + " to spare"};
}

std::string hint_at_sync(std::uint64_t plain_frees, std::uint64_t pinned_bytes) {
  if (plain_frees == 0 || pinned_bytes == 0) return "";
  return std::to_string(plain_frees) + " cudaFree did not wait for the card, and there was pinned host memory (" +
         readable(pinned_bytes) + "): if results there are wrong or change, try pool.reuse=sync, which waits";
}

}  // namespace gpupool
