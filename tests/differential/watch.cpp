// See watch.h. A watching thread looks now and then; a handler of the crashing signals writes one line and lets the
// signal do its work.
#include "tests/differential/watch.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace differential {
namespace {

std::atomic<const char*> step{"start"};
std::atomic<const char*> call{nullptr};
std::atomic<unsigned long> calls{0};

// Safe in a signal handler.
void write_text(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

void say_where(const char* what) {
  const char* in = call.load();
  for (const char* part :
       {"differential: ", what, " in ", in ? in : "the program itself", ", step ", step.load(), "\n"})
    write_text(part);
}

void crashed(int number) {
  say_where(number == SIGABRT ? "aborted" : "crashed");
  raise(number);  // the handler is gone by now
}

}  // namespace

void note_step(const char* kind) { step = kind; }

InCall::InCall(const char* name) {
  ++calls;
  call = name;
}

InCall::~InCall() { call = nullptr; }

void watch(unsigned patience_seconds) {
  struct sigaction action {};
  action.sa_handler = crashed;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  for (int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) sigaction(number, &action, nullptr);
  std::thread([patience_seconds] {
    constexpr std::chrono::milliseconds kLook{500};
    unsigned long seen = 0;
    std::chrono::milliseconds unchanged{0};
    while (true) {
      std::this_thread::sleep_for(kLook);
      const unsigned long now = calls;
      unchanged = now == seen && call.load() ? unchanged + kLook : std::chrono::milliseconds{0};
      seen = now;
      if (unchanged < std::chrono::seconds(patience_seconds)) continue;
      say_where("does not return");
      signal(SIGABRT, SIG_DFL);
      std::abort();  // a debugger then shows all threads
    }
  }).detach();
}

}  // namespace differential
