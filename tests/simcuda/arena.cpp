// See arena.h. Pages of a piece that nobody uses any more are given back to the host at once.
#include "tests/simcuda/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tests/simcuda/memory_file.h"

namespace gpupool::sim {
namespace {

constexpr uint64_t kLarge = uint64_t{1} << 20;  // from here on an allocation owns its pieces
constexpr uint64_t kAddressesPerCard = 16;      // fragmentation of addresses is not what is tested here

}  // namespace

void Arena::open(Card& card) {
  card_ = &card;
  const uint64_t size = (card.total() * kAddressesPerCard + kGranularity - 1) / kGranularity * kGranularity;
  file_ = memory_file("simcuda-arena");
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(size)) != 0) {
    std::perror("simcuda: memory of a card");
    std::abort();
  }
  // The addresses are aligned by asking for one piece more and using what lies right.
  void* wide = mmap(nullptr, size + kGranularity, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  base_ = (reinterpret_cast<uint64_t>(wide) + kGranularity - 1) / kGranularity * kGranularity;
  void* mapped = mmap(reinterpret_cast<void*>(base_), size, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file_, 0);
  if (wide == MAP_FAILED || mapped == MAP_FAILED) {
    std::perror("simcuda: addresses of a card");
    std::abort();
  }
  piece_users_.assign(size / kGranularity, 0);
  ranges_.give(base_, size);
}

uint64_t Arena::allocated_bytes(uint64_t bytes) {
  const uint64_t unit = bytes >= kLarge ? kGranularity : kAlignment;
  return (bytes + unit - 1) / unit * unit;
}

uint64_t Arena::new_pieces(uint64_t start, uint64_t bytes) const {
  uint64_t pieces = 0;
  for (uint64_t piece = (start - base_) / kGranularity; piece <= (start + bytes - 1 - base_) / kGranularity; ++piece)
    pieces += piece_users_[piece] == 0;
  return pieces;
}

std::optional<uint64_t> Arena::allocate(uint64_t bytes) {
  if (bytes > card_->total()) return std::nullopt;
  bytes = allocated_bytes(bytes);
  const std::optional<uint64_t> start = ranges_.take(bytes, bytes >= kLarge ? kGranularity : kAlignment);
  if (!start) return std::nullopt;
  if (!card_->take(new_pieces(*start, bytes) * kGranularity)) {
    ranges_.give(*start, bytes);
    return std::nullopt;
  }
  for (uint64_t piece = (*start - base_) / kGranularity; piece <= (*start + bytes - 1 - base_) / kGranularity; ++piece)
    ++piece_users_[piece];
  return start;
}

void Arena::release(uint64_t start, uint64_t bytes) {
  bytes = allocated_bytes(bytes);
  uint64_t empty_from = 0;
  uint64_t empty = 0;
  for (uint64_t piece = (start - base_) / kGranularity; piece <= (start + bytes - 1 - base_) / kGranularity; ++piece) {
    if (--piece_users_[piece] != 0) continue;
    if (empty++ == 0) empty_from = base_ + piece * kGranularity;
  }
  // A small allocation may lie across two pieces, so the empty ones are always side by side.
  if (empty) discard(empty_from, empty * kGranularity);
  ranges_.give(start, bytes);
}

void Arena::discard(uint64_t start, uint64_t bytes) {
  madvise(reinterpret_cast<void*>(start), bytes, MADV_REMOVE);
  card_->give(bytes);
}

}  // namespace gpupool::sim
