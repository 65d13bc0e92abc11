// Descriptors that a forked child must close at once: the other end of a socket learns of an end only when nobody has
// it open any more. Lock-free, because in a child of fork() a lock may be held for ever; where there are more than fit,
// the child keeps them. One for exports and one for imports, owned by them.
#pragma once

#include <unistd.h>

#include <array>
#include <atomic>

namespace gpupool {

class Inherited {
 public:
  Inherited() {
    for (std::atomic<int>& place : descriptors_) place.store(kNone);
  }
  void add(int descriptor) {
    for (std::atomic<int>& place : descriptors_) {
      int none = kNone;
      if (place.compare_exchange_strong(none, descriptor)) return;
    }
  }
  /// Before it is closed.
  void remove(int descriptor) {
    for (std::atomic<int>& place : descriptors_) {
      int expected = descriptor;
      if (place.compare_exchange_strong(expected, kNone)) return;
    }
  }
  template <class Visit>
  void each(Visit visit) const {
    for (const std::atomic<int>& place : descriptors_) {
      if (const int descriptor = place.load(); descriptor != kNone) visit(descriptor);
    }
  }
  /// In the child. Async-signal-safe.
  void close_all() const {
    each([](int descriptor) { close(descriptor); });
  }

 private:
  static constexpr int kNone = -1;
  static constexpr std::size_t kMost = 128;
  std::array<std::atomic<int>, kMost> descriptors_;
};

}  // namespace gpupool
