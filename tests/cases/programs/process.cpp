// Starts, forks and ends of processes.
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

#include "tests/preload/core/program.h"

namespace {

using program::take;

int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

// Lives as long as the process, as a framework's cache does, and frees when the driver may have gone already.
struct Late {
  CUdeviceptr block = 0;
  bool asks = false;  // the last call of the program is one that gpupool never makes
  ~Late() {
    int version = 0;
    if (block) cuMemFree(block);
    if (asks) cuDriverGetVersion(&version);
  }
} late;

void use_memory_and_leave_some() {
  program::begin();
  late.block = take(1 << 20);
  static CUdeviceptr another = take(4096);
  std::atexit([] { cuMemFree(another); });
  OK(cuMemFree(take(12345)));
}

}  // namespace

// What is set in the process before its first call still counts, because nothing has called the driver earlier.
CASE(late_environment) {
  setenv("GPUPOOL_SIM_DEVICES", "3", 1);
  int count = 0;
  OK(cuInit(0));
  OK(cuDeviceGetCount(&count));
  EQUAL(count, 3);
  program::begin(2);
  OK(cuMemFree(take(4096)));
}

CASE(no_call_before_ours) {
  unsigned flags = 0;
  int active = 1;
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EQUAL(active, 0);
}

CASE(forks) {
  const CUcontext context = program::begin();
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    OK(cuCtxSetCurrent(context));
    do OK(cuMemFree(take(10000)));
    while (!stop);
  });
#ifdef __SANITIZE_ADDRESS__  // a lock of its allocator may be held for ever in the child
  stop = true;
  worker.join();
#endif
  for (int i = 0; i < 300; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      if (i % 2 == 0) std::exit(0);
      execl("/bin/true", "true", static_cast<char*>(nullptr));
      _exit(127);
    }
    EQUAL(wait_for(child), 0);
  }
  stop = true;
  if (worker.joinable()) worker.join();
}

CASE(plain_use) {
  program::begin();
  OK(cuMemFree(take(4096)));
  std::printf("%s\n", std::getenv("LD_PRELOAD"));
}

CASE(end_by_asking) {
  use_memory_and_leave_some();
  late.asks = true;
}
CASE(end_by_return) { use_memory_and_leave_some(); }
CASE(end_by_exit) {
  use_memory_and_leave_some();
  std::exit(3);
}
CASE(end_by__exit) {
  use_memory_and_leave_some();
  _exit(4);
}
CASE(end_by_abort) {
  use_memory_and_leave_some();
  std::abort();
}
CASE(end_by_term) {
  use_memory_and_leave_some();
  raise(SIGTERM);
}
CASE(end_by_kill) {
  use_memory_and_leave_some();
  raise(SIGKILL);
}

CASE(closed_library) {
  use_memory_and_leave_some();
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  HOLDS(library != nullptr);
  EQUAL(dlclose(library), 0);
  OK(cuMemFree(take(4096)));
}

// Calls that succeed leave it as it is, whatever they need of the system.
CASE(errno_is_kept) {
  constexpr int kOwn = 77;
  program::begin();
  const CUstream stream = program::new_stream();
  std::size_t free = 0;
  std::size_t total = 0;
  CUdeviceptr plain = 0;
  CUdeviceptr ordered = 0;
  CUdeviceptr grown = 0;
  errno = kOwn;
  OK(cuMemAlloc(&plain, 1000));
  EQUAL(errno, kOwn);
  OK(cuMemAlloc(&grown, std::size_t{1} << 30));
  EQUAL(errno, kOwn);
  OK(cuMemAllocAsync(&ordered, 1000, stream));
  OK(cuMemGetInfo(&free, &total));
  OK(cuMemFreeAsync(ordered, stream));
  OK(cuMemFree(plain));
  OK(cuMemFree(grown));
  EQUAL(errno, kOwn);
}

CASE(signals) {
  struct sigaction before[32];
  for (int number = 1; number < 32; ++number) sigaction(number, nullptr, &before[number]);
  use_memory_and_leave_some();
  for (int number = 1; number < 32; ++number) {
    struct sigaction now;
    if (sigaction(number, nullptr, &now) != 0) continue;
    HOLDS(now.sa_handler == before[number].sa_handler);
  }
}

// Three at once, which start while the others hold their pools.
CASE(three_sharers) {
  pid_t children[3];
  int gates[3][2];
  int done[2];
  HOLDS(pipe(done) == 0);
  for (int i = 0; i < 3; ++i) {
    HOLDS(pipe(gates[i]) == 0);
    children[i] = fork();
    if (children[i] == 0) {
      program::begin();
      const CUdeviceptr block = take(64 << 20);
      char byte = 0;
      HOLDS(write(done[1], &byte, 1) == 1);
      close(gates[i][1]);
      HOLDS(read(gates[i][0], &byte, 1) == 0);  // until the parent has seen all of them
      OK(cuMemFree(block));
      std::exit(program::failures());
    }
    close(gates[i][0]);
  }
  char bytes[1];
  for (int i = 0; i < 3; ++i) HOLDS(read(done[0], bytes, 1) == 1);
  for (int i = 0; i < 3; ++i) close(gates[i][1]);
  for (int i = 0; i < 3; ++i) EQUAL(wait_for(children[i]), 0);
}
