// simcuda.h: what tests ask beside CUDA. (Counters are in call.cpp.)
#include "tests/simcuda/simcuda.h"

#include "tests/simcuda/call.h"
#include "tests/simcuda/faults.h"
#include "tests/simcuda/scheduler.h"

using namespace gpupool::sim;

int simcuda_set_faults(const char* faults) {
  const std::lock_guard lock(big_lock());
  return set_faults(faults) ? 0 : -1;
}

int simcuda_set_schedule(const char* schedule, uint64_t seed) {
  const std::lock_guard lock(big_lock());
  Schedule parsed;
  if (!parse_schedule(schedule, parsed)) return -1;
  set_schedule(parsed, seed);
  return 0;
}

uint64_t simcuda_pending(void) {
  const std::lock_guard lock(big_lock());
  return pending();
}

void simcuda_run(void) {
  const std::lock_guard lock(big_lock());
  run_everything();
}

uint64_t simcuda_now(void) {
  const std::lock_guard lock(big_lock());
  return now();
}
