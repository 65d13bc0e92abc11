// See threads.h.
#include "tests/differential/threads.h"

namespace differential {

Threads::Threads(unsigned count) : turn_(count) {
  const std::lock_guard lock(mutex_);  // nobody looks around before all are here
  for (unsigned mine = 0; mine < count; ++mine) threads_.emplace_back([this, mine] { work(mine); });
}

Threads::~Threads() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  turned_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Threads::run(unsigned thread, const std::function<void()>& step) {
  std::unique_lock lock(mutex_);
  step_ = &step;
  turn_ = thread;
  turned_.notify_all();
  turned_.wait(lock, [this] { return turn_ == count(); });
}

void Threads::work(unsigned mine) {
  std::unique_lock lock(mutex_);
  while (true) {
    turned_.wait(lock, [this, mine] { return over_ || turn_ == mine; });
    if (over_) return;
    (*step_)();
    turn_ = count();
    turned_.notify_all();
  }
}

}  // namespace differential
