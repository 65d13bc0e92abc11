#include "cli/bench/ticks.h"

#include <algorithm>
#include <vector>

namespace gpupool::bench {

Clock calibrate() {
  using Steady = std::chrono::steady_clock;
  Clock clock;
  const Steady::time_point begin = Steady::now();
  const std::uint64_t first = ticks();
  while (Steady::now() - begin < std::chrono::milliseconds(50)) {
  }
  const std::uint64_t last = ticks();
  clock.ns_per_tick =
      std::chrono::duration<double, std::nano>(Steady::now() - begin).count() / static_cast<double>(last - first);
  std::vector<std::uint64_t> empty(10001);
  for (std::uint64_t& e : empty) {
    const std::uint64_t before = ticks();
    e = ticks() - before;
  }
  std::nth_element(empty.begin(), empty.begin() + 5000, empty.end());
  clock.empty_ns = static_cast<double>(empty[5000]) * clock.ns_per_tick;
  return clock;
}

}  // namespace gpupool::bench
