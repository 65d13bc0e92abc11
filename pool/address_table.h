// Places on the tape and addresses of the device: one stretch where the tape chose its addresses (vmm), one per piece
// where each piece brought its own (arena). Changed under the tape's lock, read by anyone without it: begins and ends
// are atomics, a stretch that is gone is empty.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "pool/granule.h"

namespace gpupool {

class AddressTable {
 public:
  static constexpr unsigned kStretches = 1024;

  /// False when the table is full.
  bool add(std::uint64_t address, std::uint64_t bytes, Granules place);
  void remove(Granules place);

  bool contains(std::uint64_t address) const { return find(address) != nullptr; }
  /// The place of an address on the tape; false when it lies elsewhere.
  bool place_of(std::uint64_t address, Granules& place) const {
    const Stretch* stretch = find(address);
    if (stretch == nullptr) return false;
    std::uint64_t offset = address - stretch->begin.load(std::memory_order_relaxed);
    place = stretch->place.load(std::memory_order_relaxed) + static_cast<Granules>(offset / kGranuleBytes);
    return true;
  }
  std::uint64_t address_of(Granules place) const {
    unsigned used = used_.load(std::memory_order_relaxed);
    for (unsigned i = 0; i < used; ++i) {
      const Stretch& stretch = stretches_[i];
      std::uint64_t begin = stretch.begin.load(std::memory_order_relaxed);
      std::uint64_t offset =
          bytes_of(place - stretch.place.load(std::memory_order_relaxed));  // huge when it lies before
      if (begin + offset < stretch.end.load(std::memory_order_relaxed)) return begin + offset;
    }
    return 0;
  }

 private:
  struct Stretch {
    std::atomic<std::uint64_t> begin{0};
    std::atomic<std::uint64_t> end{0};
    std::atomic<Granules> place{0};
  };
  const Stretch* find(std::uint64_t address) const {
    unsigned used = used_.load(std::memory_order_acquire);
    for (unsigned i = 0; i < used; ++i) {
      const Stretch& stretch = stretches_[i];
      if (address < stretch.end.load(std::memory_order_acquire) &&
          address >= stretch.begin.load(std::memory_order_relaxed)) {
        return &stretch;
      }
    }
    return nullptr;
  }

  std::array<Stretch, kStretches> stretches_;
  std::atomic<unsigned> used_{0};
};

}  // namespace gpupool
