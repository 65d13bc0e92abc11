// How many requests there were of which size: a count for each power of two, and all bytes. As the other counters
// (stats.h): written under the tape's lock, read by anyone, plain memory, fit for a shared page.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "pool/stats.h"

namespace gpupool {

class SizeHistogram {
 public:
  /// Bucket i holds sizes in [2^i, 2^(i+1)).
  static constexpr unsigned kBuckets = 48;

  void add(std::uint64_t bytes) {
    const unsigned bucket = static_cast<unsigned>(std::bit_width(bytes | 1)) - 1;
    counts_[bucket < kBuckets ? bucket : kBuckets - 1].add(1);
    bytes_.add(bytes);
  }
  std::uint64_t count(unsigned bucket) const { return counts_[bucket].get(); }
  /// Of all requests together.
  std::uint64_t bytes() const { return bytes_.get(); }

 private:
  std::array<Counter, kBuckets> counts_;
  Counter bytes_;
};

}  // namespace gpupool
