// Several threads that act one at a time, in the order that the seed picks: each has its own current context and its
// own per-thread default stream, and the output stays one sequence that two runs can be compared by.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace differential {

class Threads {
 public:
  explicit Threads(unsigned count);
  ~Threads();

  unsigned count() const { return static_cast<unsigned>(threads_.size()); }
  /// Runs it on that thread and returns when it is done.
  void run(unsigned thread, const std::function<void()>& step);

 private:
  void work(unsigned mine);

  std::mutex mutex_;
  std::condition_variable turned_;
  unsigned turn_;  // whose it is; count() for the main thread's
  bool over_ = false;
  const std::function<void()>* step_ = nullptr;
  std::vector<std::thread> threads_;
};

}  // namespace differential
