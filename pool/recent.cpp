#include "pool/recent.h"

namespace gpupool {

bool Recent::holds(Range block) const {
  if (!keeps(block.size())) return false;
  Index i = next_[link_of(block.size())];
  while (i != kNone && ring_[i].place != block.begin) i = next_[link_behind(i)];
  return i != kNone;
}

std::uint64_t Recent::granules() const {
  std::uint64_t sum = 0;
  for (Granules size = 0; size < kSizes; ++size) {
    for (Index i = next_[link_of(size)]; i != kNone; i = next_[link_behind(i)]) sum += size;
  }
  return sum;
}

const char* Recent::validate() const {
  unsigned filled = 0;
  unsigned linked = 0;
  for (const Entry& entry : ring_) filled += entry.place != kNowhere;
  for (Granules size = 0; size < kSizes; ++size) {
    unsigned last_age = 0;
    unsigned link = link_of(size);
    for (Index i = next_[link]; i != kNone; i = next_[link]) {
      if (ring_[i].place == kNowhere) return "recent: an empty place in a queue";
      const unsigned age = (i + kMost - here_) % kMost + 1;
      if (age <= last_age) return "recent: a queue is not in order of age";
      last_age = age;
      link = link_behind(i);
      ++linked;
    }
    if (last_[size] != link) return "recent: a queue's last link is not its last";
  }
  return filled == count_ && linked == count_ ? nullptr : "recent: blocks that are in no queue";
}

}  // namespace gpupool
