// The unit of the pool's arithmetic: places and lengths on a tape are counted in granules of 512 bytes, in 31 bits, so
// that a tape may span 1 TiB. 512 is what native allocations are apart and what every texture alignment divides.
#pragma once

#include <cstdint>

namespace gpupool {

using Granules = std::uint32_t;  // a place on the tape, or a length
constexpr std::uint64_t kGranuleBytes = 512;
constexpr std::uint64_t kMaxTapeBytes = ((std::uint64_t{1} << 31) - 2) * kGranuleBytes;

/// Smallest number of granules that hold `bytes`; `bytes` must be at most kMaxTapeBytes.
constexpr Granules granules_for(std::uint64_t bytes) {
  return static_cast<Granules>((bytes + kGranuleBytes - 1) / kGranuleBytes);
}
constexpr std::uint64_t bytes_of(Granules granules) { return granules * kGranuleBytes; }

/// A stretch of the tape, end excluded.
struct Range {
  Granules begin = 0;
  Granules end = 0;
  Granules size() const { return end - begin; }
  bool empty() const { return begin >= end; }
  bool contains(Range other) const { return begin <= other.begin && other.end <= end; }
  bool overlaps(Range other) const { return begin < other.end && other.begin < end; }
  bool operator==(const Range&) const = default;
};

}  // namespace gpupool
