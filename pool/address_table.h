// Places on the tape and addresses of the device: one stretch where the tape chose its addresses (vmm), one per piece where each piece
// brought its own (arena). Changed under the tape's lock, read by anyone without it: begins and ends are atomics, a stretch that is gone
// is empty.
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
  bool place_of(std::uint64_t address, Granules& place) const;
  std::uint64_t address_of(Granules place) const;

 private:
  struct Stretch {
    std::atomic<std::uint64_t> begin{0};
    std::atomic<std::uint64_t> end{0};
    std::atomic<Granules> place{0};
  };
  const Stretch* find(std::uint64_t address) const;

  std::array<Stretch, kStretches> stretches_;
  std::atomic<unsigned> used_{0};
};

}  // namespace gpupool
