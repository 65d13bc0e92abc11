// The part of a card's memory that the driver hands out itself (cuMemAlloc, driver pools): a long range of addresses
// over one sparse file, filled by best fit. Physical memory is counted in pieces of 2 MiB, as on a card: small
// allocations share a piece, large ones own theirs. Guarded by the big lock.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/simcuda/card.h"
#include "tests/simcuda/range_allocator.h"

namespace gpupool::sim {

constexpr uint64_t kGranularity = uint64_t{2} << 20;
constexpr uint64_t kAlignment = 512;

class Arena {
 public:
  // Reserves addresses of several times the card.
  void open(Card& card);

  // `bytes` is rounded up to what allocated_bytes() says; nothing if the card has no room.
  std::optional<uint64_t> allocate(uint64_t bytes);
  void release(uint64_t start, uint64_t bytes);

  // Addresses alone, and memory for whole pieces of them: how a driver pool grows in one contiguous range.
  std::optional<uint64_t> reserve(uint64_t bytes, uint64_t alignment) { return ranges_.take(bytes, alignment); }
  void free_addresses(uint64_t start, uint64_t bytes) { ranges_.give(start, bytes); }
  bool fill(uint64_t bytes) { return card_->take(bytes); }
  void empty(uint64_t start, uint64_t bytes) { discard(start, bytes); }

  static uint64_t allocated_bytes(uint64_t bytes);

  // The file behind the addresses, and where in it an address lies: for other processes.
  int file() const { return file_; }
  uint64_t offset(uint64_t address) const { return address - base_; }

 private:
  uint64_t new_pieces(uint64_t start, uint64_t bytes) const;
  void discard(uint64_t start, uint64_t bytes);

  Card* card_ = nullptr;
  int file_ = -1;
  uint64_t base_ = 0;
  std::vector<uint32_t> piece_users_;  // allocations that touch each piece of 2 MiB
  RangeAllocator ranges_;
};

}  // namespace gpupool::sim
