// Lives unlike a plain program's: with handlers for faults, as virtual machines have them, and as a daemon.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/preload/core/program.h"

namespace {

using program::take;
using program::take_ordered;

constexpr std::size_t kPage = 4096;
constexpr std::size_t kStack = std::size_t{64} << 10;
constexpr int kThreads = 3;
constexpr int kRounds = 20;

// Pages that nobody may touch: some are opened by the handler installed last, the others by the one that it calls.
class Pages {
 public:
  explicit Pages(std::size_t count) : bytes_(count * kPage) {
    void* pages = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HOLDS(pages != MAP_FAILED);
    begin_ = static_cast<char*>(pages);
  }
  void* at(int page) const { return begin_ + static_cast<std::size_t>(page) * kPage; }
  bool open(const void* address) const {
    if (address < begin_ || address >= begin_ + bytes_) return false;
    const auto page = reinterpret_cast<std::uintptr_t>(address) / kPage * kPage;
    return mprotect(reinterpret_cast<void*>(page), kPage, PROT_READ | PROT_WRITE) == 0;
  }

 private:
  std::size_t bytes_;
  char* begin_ = nullptr;
};

Pages* own_pages = nullptr;
Pages* pages_of_the_first = nullptr;
std::atomic<int> own_faults{0};
std::atomic<int> faults_of_the_first{0};
std::atomic<int> off_the_stack{0};
struct sigaction first_action;

void first_handler(int, siginfo_t* info, void*) {
  if (!pages_of_the_first->open(info->si_addr)) _exit(99);
  ++faults_of_the_first;
}

void own_handler(int number, siginfo_t* info, void* context) {
  stack_t stack{};
  if (sigaltstack(nullptr, &stack) != 0 || !(stack.ss_flags & SS_ONSTACK)) ++off_the_stack;
  if (!own_pages->open(info->si_addr)) return first_action.sa_sigaction(number, info, context);
  ++own_faults;
}

struct sigaction action_of(void (*handler)(int, siginfo_t*, void*), int flags) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  sigfillset(&action.sa_mask);
  return action;
}

bool same(const struct sigaction& left, const struct sigaction& right) {
  return left.sa_sigaction == right.sa_sigaction && left.sa_flags == right.sa_flags &&
         std::memcmp(&left.sa_mask, &right.sa_mask, sizeof(unsigned long)) == 0;
}

// A thread's own stack for handlers and its blocked signals; the pool leaves both alone.
class ThreadSignals {
 public:
  ThreadSignals() : memory_(kStack) {
    mine_.ss_sp = memory_.data();
    mine_.ss_size = memory_.size();
    sigaltstack(&mine_, nullptr);
    sigset_t some;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &some, nullptr);
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked_);
  }
  ~ThreadSignals() {
    stack_t now{};
    sigset_t blocked;
    sigaltstack(nullptr, &now);
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    HOLDS(now.ss_sp == mine_.ss_sp && now.ss_size == mine_.ss_size && now.ss_flags == 0);
    for (int number = 1; number < 32; ++number) EQUAL(sigismember(&blocked, number), sigismember(&blocked_, number));
    const stack_t none{.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
    sigaltstack(&none, nullptr);
  }
  ThreadSignals(const ThreadSignals&) = delete;
  ThreadSignals& operator=(const ThreadSignals&) = delete;

 private:
  std::vector<char> memory_;
  stack_t mine_{};
  sigset_t blocked_{};
};

}  // namespace

// Every answer of the pool goes to a page that is opened by the handler of the fault.
CASE(handlers_of_faults) {
  own_pages = new Pages(kThreads * kRounds);
  pages_of_the_first = new Pages(kThreads * kRounds);
  const struct sigaction first = action_of(first_handler, 0);
  const struct sigaction own = action_of(own_handler, SA_ONSTACK | SA_RESTART);
  sigaction(SIGSEGV, &first, nullptr);
  sigaction(SIGSEGV, &own, &first_action);
  struct sigaction before[32];
  for (int number = 1; number < 32; ++number) sigaction(number, nullptr, &before[number]);
  const CUcontext context = program::begin();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([=] {
      const ThreadSignals signals;
      OK(cuCtxSetCurrent(context));
      const CUstream stream = program::new_stream();
      for (int round = 0; round < kRounds; ++round) {
        auto* plain = static_cast<CUdeviceptr*>(own_pages->at(t * kRounds + round));
        auto* ordered = static_cast<CUdeviceptr*>(pages_of_the_first->at(t * kRounds + round));
        OK(cuMemAlloc(plain, 100000));
        OK(cuMemAllocAsync(ordered, 100000, stream));
        OK(cuMemFreeAsync(*ordered, stream));
        OK(cuMemFree(*plain));
      }
      OK(cuStreamDestroy(stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EQUAL(own_faults.load(), kThreads * kRounds);
  EQUAL(faults_of_the_first.load(), kThreads * kRounds);
  EQUAL(off_the_stack.load(), 0);
  for (int number = 1; number < 32; ++number) {
    struct sigaction now;
    if (sigaction(number, nullptr, &now) == 0) HOLDS(same(now, before[number]));
  }
}

// Forked twice, without a terminal and without one open descriptor, as daemons start. Later a file of its own has the
// number of stderr: nobody else may write there. The first process waits for the daemon's count of failures.
CASE(daemon) {
  constexpr int kLine = 200;
  constexpr int kMost = 1024;
  int line[2];
  HOLDS(pipe(line) == 0);
  if (fork() == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    HOLDS(chdir("/") == 0);
    dup2(line[1], kLine);
    for (int file = 0; file < kMost; ++file) {
      if (file != kLine) close(file);
    }
    program::begin();
    const CUdeviceptr kept = take(1 << 20);
    const int data = open(std::getenv("TEST_DATA"), O_CREAT | O_WRONLY | O_TRUNC, 0600);
    if (data != STDERR_FILENO) dup2(data, STDERR_FILENO);
    HOLDS(write(STDERR_FILENO, "data", 4) == 4);
    OK(cuMemFree(kept));
    CUdeviceptr none = 0;
    EQUAL(cuMemAlloc(&none, std::size_t{1} << 40), CUDA_ERROR_OUT_OF_MEMORY);
    const auto failures = static_cast<char>(program::failures());
    HOLDS(write(kLine, &failures, 1) == 1);
    std::exit(0);
  }
  close(line[1]);
  char failures = 1;
  HOLDS(read(line[0], &failures, 1) == 1);
  EQUAL(failures, 0);
  HOLDS(read(line[0], &failures, 1) == 0);  // until it has ended
}
