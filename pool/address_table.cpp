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
    if (stretch.end.load(std::memory_order_relaxed) == 0 || stretch.place.load(std::memory_order_relaxed) != place) continue;
    stretch.end.store(0, std::memory_order_release);
    return;
  }
}

const AddressTable::Stretch* AddressTable::find(std::uint64_t address) const {
  unsigned used = used_.load(std::memory_order_acquire);
  for (unsigned i = 0; i < used; ++i) {
    const Stretch& stretch = stretches_[i];
    if (address < stretch.end.load(std::memory_order_acquire) && address >= stretch.begin.load(std::memory_order_relaxed)) {
      return &stretch;
    }
  }
  return nullptr;
}

bool AddressTable::place_of(std::uint64_t address, Granules& place) const {
  const Stretch* stretch = find(address);
  if (stretch == nullptr) return false;
  std::uint64_t offset = address - stretch->begin.load(std::memory_order_relaxed);
  place = stretch->place.load(std::memory_order_relaxed) + static_cast<Granules>(offset / kGranuleBytes);
  return true;
}

std::uint64_t AddressTable::address_of(Granules place) const {
  unsigned used = used_.load(std::memory_order_relaxed);
  for (unsigned i = 0; i < used; ++i) {
    const Stretch& stretch = stretches_[i];
    Granules first = stretch.place.load(std::memory_order_relaxed);
    std::uint64_t begin = stretch.begin.load(std::memory_order_relaxed);
    std::uint64_t end = stretch.end.load(std::memory_order_relaxed);
    if (end != 0 && place >= first && begin + bytes_of(place - first) < end) return begin + bytes_of(place - first);
  }
  return 0;
}

}  // namespace gpupool
