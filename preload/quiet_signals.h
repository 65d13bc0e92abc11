// While it lives, what this thread writes raises no signal that could end the program: a closed pipe (SIGPIPE) or a
// file that may not grow (SIGXFSZ) only fails the write. Handlers stay as they are; a signal that we caused is taken
// back.
#pragma once

#include <signal.h>
#include <time.h>

namespace gpupool {

class QuietSignals {
 public:
  QuietSignals() {
    sigemptyset(&ours_);
    sigaddset(&ours_, SIGPIPE);
    sigaddset(&ours_, SIGXFSZ);
    sigset_t pending;
    sigpending(&pending);
    for (int signal : {SIGPIPE, SIGXFSZ}) {
      if (sigismember(&pending, signal) == 1) sigdelset(&ours_, signal);  // somebody else's
    }
    pthread_sigmask(SIG_BLOCK, &ours_, &before_);
  }
  ~QuietSignals() {
    const timespec at_once{0, 0};
    while (sigtimedwait(&ours_, nullptr, &at_once) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  QuietSignals(const QuietSignals&) = delete;
  QuietSignals& operator=(const QuietSignals&) = delete;

 private:
  sigset_t ours_;
  sigset_t before_;
};

}  // namespace gpupool
