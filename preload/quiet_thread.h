// A thread of our own in the program's process: it takes no signal of the program, which does not know it.
#pragma once

#include <signal.h>

#include <thread>
#include <utility>

namespace gpupool {

/// Throws std::system_error where there is no thread to be had.
template <class Body>
std::thread quiet_thread(Body body) {
  struct Masked {
    sigset_t before;
    Masked() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~Masked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  };
  const Masked masked;
  return std::thread(std::move(body));
}

}  // namespace gpupool
