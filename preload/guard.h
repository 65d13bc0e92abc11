// Proof that a hook has been entered: functions that act for the program demand a Guard. It counts the depth of this
// thread, so that calls which the driver makes from inside our own calls pass through untouched, and it keeps errno as
// the program left it. A plain thread-local integer without a destructor: usable at any time of a thread's life, and
// cheap.
#pragma once

#include <cerrno>

namespace gpupool {

class Guard {
 public:
  Guard() : errno_(errno) { ++depth_; }
  ~Guard() {
    --depth_;
    errno = errno_;
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// Called from inside another hook of this thread: leave it to the driver.
  bool nested() const { return depth_ > 1; }
  /// Whether this thread is in one of our calls now.
  static bool inside() { return depth_ > 0; }

 private:
  static inline __thread int depth_ = 0;
  int errno_;
};

}  // namespace gpupool
