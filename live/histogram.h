// How many requests there were of which size: a count and the bytes for each power of two. Any thread adds, nobody
// waits.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace gpupool {

class SizeHistogram {
 public:
  /// Bucket i holds sizes in [2^i, 2^(i+1)).
  static constexpr unsigned kBuckets = 48;

  void add(std::uint64_t bytes) {
    const unsigned bucket = bytes == 0 ? 0 : static_cast<unsigned>(std::bit_width(bytes)) - 1;
    counts_[bucket < kBuckets ? bucket : kBuckets - 1].fetch_add(1, std::memory_order_relaxed);
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  std::uint64_t count(unsigned bucket) const { return counts_[bucket].load(std::memory_order_relaxed); }
  /// Of all requests together.
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  std::array<std::atomic<std::uint64_t>, kBuckets> counts_{};
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace gpupool
