// PyTorch's caching allocator (c10/cuda/CUDACachingAllocator.cpp, versions 2.0 to 2.11) with its defaults or with
// max_split_size_mb. Sizes are rounded to 512 bytes. Each stream has a pool for requests up to 1 MiB, in segments of 2
// MiB, and one for larger ones, in segments of 20 MiB, from 10 MiB on of the request itself rounded to 2 MiB. Best fit
// by size and address within a pool; segments never merge. What is cached goes back to the driver only when the card is
// full: whole free segments, then the request is tried again.
#include "cli/models/chunk_cache.h"
#include "cli/models/model.h"
#include "cli/trace/trace.h"

namespace gpupool::cli {
namespace {

constexpr Bytes kRounding = 512;
constexpr Bytes kSmallSize = 1_MiB;
constexpr Bytes kSmallSegment = 2_MiB;
constexpr Bytes kLargeSegment = 20_MiB;
constexpr Bytes kOwnSegmentFrom = 10_MiB;
constexpr Bytes kSegmentRounding = 2_MiB;

Bytes round_up(Bytes bytes, Bytes unit) { return (bytes + unit - 1) / unit * unit; }

class PyTorch final : public Model {
 public:
  PyTorch(Bytes card, Bytes max_split) : cache_(card), max_split_(max_split ? max_split : ~Bytes{0}) {}

  bool allocate(std::uint32_t slot, Bytes bytes, std::uint32_t stream) override {
    const Bytes size = round_up(bytes, kRounding);
    // Two lists for each stream: small and large.
    const std::uint32_t list = 2 * (stream == kPlain ? 0 : stream) + (size > kSmallSize ? 1 : 0);
    BlockNumber block = find(cache_.list(list), size);
    if (block == kNoBlock) block = cache_.chunk(list, segment_for(size));
    if (block == kNoBlock) return false;
    if (splits(size, cache_.blocks[block].bytes - size)) {
      const BlockNumber rest = cache_.blocks.split(block, size);
      cache_.list(list).insert(rest, cache_.blocks[rest]);
    }
    cache_.take(slot, block);
    return true;
  }

  void free(std::uint32_t slot, std::uint32_t) override { cache_.give_back(slot); }
  Bytes reserved() const override { return cache_.reserved(); }
  DriverCalls driver_calls() const override { return cache_.driver_calls(); }

 private:
  /// Takes the best fit out of the list, unless max_split_size_mb keeps it for others.
  BlockNumber find(FreeList& list, Bytes size) {
    const auto found = list.fitting(size);
    if (found == list.end()) return kNoBlock;
    const BlockNumber number = found->second;
    const Bytes there = cache_.blocks[number].bytes;
    if (size < max_split_ && there >= max_split_) return kNoBlock;
    if (size >= max_split_ && there >= size + kLargeSegment) return kNoBlock;
    list.erase(number, cache_.blocks[number]);
    return number;
  }

  bool splits(Bytes size, Bytes rest) const {
    return size <= kSmallSize ? rest >= kRounding : size < max_split_ && rest > kSmallSize;
  }

  static Bytes segment_for(Bytes size) {
    if (size <= kSmallSize) return kSmallSegment;
    return size < kOwnSegmentFrom ? kLargeSegment : round_up(size, kSegmentRounding);
  }

  ChunkCache cache_;
  const Bytes max_split_;
};

}  // namespace

std::unique_ptr<Model> make_pytorch(Bytes card, Bytes max_split) { return std::make_unique<PyTorch>(card, max_split); }

}  // namespace gpupool::cli
