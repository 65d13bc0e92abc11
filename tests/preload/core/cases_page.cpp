// Programs to be looked at and killed while they run.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <vector>

#include "tests/preload/core/program.h"

namespace {

// What the program itself has counted, in a file that outlives it.
struct Counts {
  std::atomic<unsigned long> allocated;
  std::atomic<unsigned long> freed;
};

Counts& counts() {
  const int file = open(std::getenv("CASE_COUNTS"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof(Counts)) != 0) std::exit(3);
  return *static_cast<Counts*>(mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
}

}  // namespace

CASE(churn) {
  Counts& mine = counts();
  program::begin();
  const CUstream streams[] = {program::new_stream(), program::new_stream()};
  unsigned long random = std::strtoul(std::getenv("CASE_SEED"), nullptr, 10);
  const auto below = [&](unsigned long limit) {
    random = random * 6364136223846793005ul + 1442695040888963407ul;
    return (random >> 33) % limit;
  };
  struct Held {
    CUdeviceptr address;
    CUstream stream;  // null: plain
  };
  std::vector<Held> held;
  for (;;) {
    if (held.size() < 64 && below(2) == 0) {
      Held fresh{0, below(2) == 0 ? nullptr : streams[below(2)]};
      const std::size_t bytes = 1 + below(1 << 20);
      OK(fresh.stream ? cuMemAllocAsync(&fresh.address, bytes, fresh.stream) : cuMemAlloc(&fresh.address, bytes));
      ++mine.allocated;
      held.push_back(fresh);
    } else if (!held.empty()) {
      std::swap(held[below(held.size())], held.back());
      const Held gone = held.back();
      held.pop_back();
      OK(gone.stream ? cuMemFreeAsync(gone.address, gone.stream) : cuMemFree(gone.address));
      ++mine.freed;
    }
    if (program::failures() != 0) std::exit(1);
  }
}

// Ends without its destructors, as os._exit does.
CASE(quick_exit) {
  program::begin();
  CUdeviceptr block = 0;
  OK(cuMemAlloc(&block, 3 << 20));
  _exit(program::failures());
}

// A loop of steps, each slow enough to be seen from outside, that only a signal ends.
CASE(steps) {
  program::begin();
  const CUdeviceptr weights = program::take(8 << 20);
  for (;;) {
    CUdeviceptr activations = 0;
    OK(cuMemAlloc(&activations, 40 << 20));
    usleep(30'000);
    OK(cuMemFree(activations));
    usleep(30'000);
    if (program::failures() != 0 || weights == 0) std::exit(1);
  }
}

// Becomes itself again without an exit in between.
CASE(becomes_another) {
  program::begin();
  CUdeviceptr block = 0;
  OK(cuMemAlloc(&block, 3 << 20));
  char self[] = "/proc/self/exe";
  char name[] = "quick_exit";
  char* words[] = {self, name, nullptr};
  execv(self, words);
  std::exit(1);
}

// The parent is killed; what it has left is not the child's.
CASE(fork_then_killed) {
  program::begin();
  CUdeviceptr block = 0;
  OK(cuMemAlloc(&block, 3 << 20));
  if (fork() == 0) {
    sleep(5);
    _exit(0);
  }
  kill(getpid(), SIGKILL);
}
