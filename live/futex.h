// Sleeping on a word until somebody changes it: the one use of futex(2), for letters between processes and for threads
// of our own. Its timeouts go by the clock that cannot be set, on every C library; a condition variable's do not on
// those before 2.30. A word that is no longer mapped is an error to the kernel, not a signal to the process.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>

namespace gpupool {

using FutexWord = std::atomic<std::uint32_t>;

/// Returns when the word is woken, or no longer shows `value`; and for no reason at times.
inline void futex_wait(FutexWord& word, std::uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT, value, nullptr, nullptr, 0);
}

/// The same, for at most `patience`.
inline void futex_wait(FutexWord& word, std::uint32_t value, std::chrono::nanoseconds patience) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const timespec timeout{patience.count() / kSecond, patience.count() % kSecond};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &timeout, nullptr, 0);
}

/// Wakes whoever sleeps on it, in whatever process.
inline void futex_wake(FutexWord& word) { syscall(SYS_futex, &word, FUTEX_WAKE, 0x7fffffff, nullptr, nullptr, 0); }

}  // namespace gpupool
