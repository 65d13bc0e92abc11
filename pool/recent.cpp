#include "pool/recent.h"

namespace gpupool {

bool Recent::holds(Range block) const {
  if (!keeps(block.size())) return false;
  Index i = oldest_[block.size()];
  while (i != kNone && ring_[i].place != block.begin) i = ring_[i].newer;
  return i != kNone;
}

const char* Recent::validate() const {
  unsigned filled = 0;
  unsigned linked = 0;
  for (const Entry& entry : ring_) filled += entry.size != 0;
  for (Granules size = 0; size < kSizes; ++size) {
    unsigned last_age = 0;
    Index last = kNone;
    for (Index i = oldest_[size]; i != kNone; i = ring_[i].newer) {
      if (ring_[i].size != size) return "recent: a block in the queue of another size";
      const unsigned age = (i + kMost - next_) % kMost + 1;
      if (age <= last_age) return "recent: a queue is not in order of age";
      last_age = age;
      last = i;
      ++linked;
    }
    if (last != kNone && newest_[size] != last) return "recent: a queue's newest is not its last";
  }
  return filled == count_ && linked == count_ ? nullptr : "recent: blocks that are in no queue";
}

}  // namespace gpupool
