// Steps of a training loop, seen from outside: live memory goes up and comes down again, once a step. Only swings over
// half of the range between its highest and its lowest count, and they count anew whenever that range has become wider
// by more than a tenth, so that loading, warming up and the first steps are left behind. A value; whoever looks too
// seldom sees fewer steps than there were, never more.
#pragma once
#include <algorithm>

#include "config/bytes.h"

namespace gpupool::cli {

class Steps {
 public:
  void see(Bytes live) {
    const Bytes range = high_ - low_;
    if (live > high_ + range / 10) {  // what was lowest before says nothing of what comes
      low_ = high_ = live;
      count_ = 0;
    } else if (live + range / 10 < low_) {
      low_ = live;
      count_ = 0;
      is_up_ = false;
    } else if (is_up_ && live < low_ + range / 4) {
      is_up_ = false;
      ++count_;
    } else if (live > high_ - range / 4) {
      is_up_ = true;
    }
    low_ = std::min(low_, live);
    high_ = std::max(high_, live);
  }
  unsigned count() const { return count_; }

 private:
  Bytes low_ = 0;
  Bytes high_ = 0;
  bool is_up_ = false;
  unsigned count_ = 0;
};

}  // namespace gpupool::cli
