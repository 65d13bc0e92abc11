// A lock taken out of order is reported, by the checked kind of mutex, whatever this build uses elsewhere.
#include "pool/lock_order.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.h"

using namespace gpupool;

namespace {

struct Ending {
  int status = 0;
  std::string said;
};

// In a child, because a report ends the process.
template <class Locks>
Ending try_locks(Locks locks) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    LocksHeld::report = [](const char* wanted, const char* held) {
      std::fprintf(stderr, "%s is wanted while %s is held\n", wanted, held);
    };
    locks();
    _exit(0);
  }
  close(ends[1]);
  Ending ending;
  char text[256];
  for (ssize_t bytes; (bytes = read(ends[0], text, sizeof text)) > 0;)
    ending.said.append(text, static_cast<std::size_t>(bytes));
  close(ends[0]);
  waitpid(child, &ending.status, 0);
  return ending;
}

CheckedMutex<LockRank::kRegistry> registry;
CheckedMutex<LockRank::kTape> tape;
CheckedMutex<LockRank::kTape> other_tape;
CheckedMutex<LockRank::kCurve> curve;

}  // namespace

TEST_CASE("locks in order are taken in silence, and several tapes under the registry's") {
  const Ending ending = try_locks([] {
    for (int round = 0; round < 2; ++round) {
      const std::lock_guard first(registry);
      const std::lock_guard second(tape);
      const std::lock_guard third(other_tape);
      const std::lock_guard last(curve);
    }
    const std::lock_guard again(tape);
  });
  CHECK(ending.said == "");
  CHECK(ending.status == 0);
}

TEST_CASE("a lock out of order is named and ends the process") {
  const Ending inverted = try_locks([] {
    const std::lock_guard inner(curve);
    const std::lock_guard outer(tape);
  });
  CHECK(inverted.said == "tape is wanted while curve is held\n");
  CHECK(WIFSIGNALED(inverted.status));

  const Ending two_tapes = try_locks([] {
    const std::lock_guard one(tape);
    const std::lock_guard two(other_tape);
  });
  CHECK(two_tapes.said == "tape is wanted while tape is held\n");
  CHECK(WIFSIGNALED(two_tapes.status));
}

TEST_CASE("a lock that is only tried may be out of order, and counts while it is held") {
  const Ending tried = try_locks([] {
    const std::lock_guard inner(curve);
    if (const std::unique_lock outer(tape, std::try_to_lock); !outer) _exit(1);
  });
  CHECK(tried.status == 0);
  const Ending then = try_locks([] {
    const std::unique_lock inner(curve, std::try_to_lock);
    const std::lock_guard outer(tape);
  });
  CHECK(WIFSIGNALED(then.status));
}

TEST_CASE("a tape's lock lets one in at a time, and tells that others wait") {
  NappingMutex mutex;
  CHECK_FALSE(mutex.wanted());
  unsigned counted = 0;
  std::vector<std::thread> threads;
  mutex.lock();
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 20000; ++turn) {
        const std::lock_guard lock(mutex);
        ++counted;
      }
    });
  }
  while (!mutex.wanted()) std::this_thread::yield();
  CHECK_FALSE(mutex.try_lock());
  CHECK(counted == 0);
  mutex.unlock();
  for (std::thread& thread : threads) thread.join();
  CHECK(counted == 80000);
  CHECK_FALSE(mutex.wanted());
}
