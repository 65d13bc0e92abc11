#include "pool/address_table.h"

namespace gpupool {

bool AddressTable::add(std::uint64_t address, std::uint64_t bytes, Granules place) {
  unsigned used = used_.load(std::memory_order_relaxed);
  unsigned i = 0;
  while (i < used && stretches_[i].end.load(std::memory_order_relaxed) != 0) ++i;
  if (i == kStretches) return false;
  stretches_[i].place.store(place, std::memory_order_relaxed);
  stretches_[i].begin.store(address, std::memory_order_relaxed);
  stretches_[i].end.store(address + bytes, std::memory_order_release);
  if (i == used) used_.store(used + 1, std::memory_order_release);
  return true;
}

void AddressTable::remove(Granules place) {
  for (unsigned i = 0; i < used_.load(std::memory_order_relaxed); ++i) {
    Stretch& stretch = stretches_[i];
    if (stretch.end.load(std::memory_order_relaxed) == 0 || stretch.place.load(std::memory_order_relaxed) != place)
      continue;
    stretch.end.store(0, std::memory_order_release);
    return;
  }
}

}  // namespace gpupool
