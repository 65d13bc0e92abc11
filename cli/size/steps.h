// Steps of a training loop, seen from outside: whatever the size of a batch, live memory comes back to what stays from
// step to step. The floor is the lowest that it has been in the younger half of what was seen, so that loading is left
// behind; a step is a way from above the floor back to it. Both limits are parts of the whole range, which keeps small
// things in between from counting. A value; whoever looks too seldom sees fewer steps than there were.
#pragma once
#include <algorithm>
#include <cstdint>

#include "config/bytes.h"

namespace gpupool::cli {

class Steps {
 public:
  void see(Bytes live) {
    if (++seen_ >= next_turn_) {
      next_turn_ *= 2;
      low_before_ = low_now_;
      low_now_ = ~Bytes{0};
    }
    low_now_ = std::min(low_now_, live);
    high_ = std::max(high_, live);
    const Bytes floor = std::min(low_before_, low_now_);
    const Bytes range = high_ - floor;
    if (live > floor + range / 16) {
      is_above_ = true;
    } else if (is_above_ && live <= floor + range / 32) {
      is_above_ = false;
      ++count_;
    }
  }
  unsigned count() const { return count_; }

 private:
  std::uint64_t seen_ = 0;
  std::uint64_t next_turn_ = 64;
  Bytes low_before_ = ~Bytes{0};  // in the part before the last turn
  Bytes low_now_ = ~Bytes{0};     // since then
  Bytes high_ = 0;
  bool is_above_ = false;
  unsigned count_ = 0;
};

}  // namespace gpupool::cli
