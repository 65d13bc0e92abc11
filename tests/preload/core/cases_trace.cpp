// Programs for the recorder: one that is killed, one whose disk is full, many threads, a long one.
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "tests/preload/core/program.h"

namespace {

void pairs(unsigned count, std::size_t bytes) {
  for (unsigned i = 0; i < count; ++i) {
    CUdeviceptr block = 0;
    OK(cuMemAlloc(&block, bytes));
    OK(cuMemFree(block));
  }
}

}  // namespace

// Until it is killed.
CASE(pairs_for_ever) {
  program::begin();
  for (;;) {
    pairs(500, 4096);
    usleep(50'000);
  }
}

CASE(disk_full) {
  program::begin();
  pairs(1, 4096);
  const rlimit little{3000, 3000};  // for the head of a trace, not for all of it
  HOLDS(setrlimit(RLIMIT_FSIZE, &little) == 0);
  signal(SIGXFSZ, SIG_IGN);
  pairs(5000, 4096);
  usleep(200'000);
  pairs(5000, 4096);
}

CASE(many_pairs) {
  const CUcontext context = program::begin();
  std::vector<std::thread> threads;
  for (std::size_t number = 0; number < 4; ++number) {
    threads.emplace_back([context, number] {
      OK(cuCtxSetCurrent(context));
      pairs(5000, (number + 1) * 1000);
    });
  }
  for (std::thread& thread : threads) thread.join();
}
