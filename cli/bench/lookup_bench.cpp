#include "cli/bench/lookup_bench.h"

#include <dlfcn.h>

#include <algorithm>
#include <vector>

namespace gpupool::bench {

double time_of_lookup(const Clock& clock) {
  constexpr unsigned kRounds = 301;
  constexpr unsigned kCalls = 200;  // a round lasts a few microseconds, so that few of them are interrupted
  std::vector<double> rounds(kRounds);
  for (double& round : rounds) {
    const std::uint64_t begin = ticks();
    for (unsigned i = 0; i < kCalls; ++i) {
      void* volatile found = dlsym(RTLD_DEFAULT, "malloc");
      static_cast<void>(found);
    }
    round = (static_cast<double>(ticks() - begin) * clock.ns_per_tick - clock.empty_ns) / kCalls;
  }
  std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
  return rounds[kRounds / 2];
}

}  // namespace gpupool::bench
