// How much memory a card has, and how much of it is taken: by this process, and by others if all of them name the same
// file in GPUPOOL_SIM_CARD. What a dead process took is free again. Guarded by the big lock, and between processes by a
// lock on the file.
#pragma once

#include <cstdint>

namespace gpupool::sim {

class Card {
 public:
  void open(int ordinal, uint64_t total);
  uint64_t total() const { return total_; }
  uint64_t used() const;
  bool take(uint64_t bytes);
  void give(uint64_t bytes);

 private:
  int ordinal_ = 0;
  uint64_t total_ = 0;
  uint64_t mine_ = 0;
};

}  // namespace gpupool::sim
