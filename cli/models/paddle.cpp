// PaddlePaddle's auto_growth (paddle/phi/core/memory/allocation/auto_growth_best_fit_allocator.cc), one for each
// stream. Sizes are rounded to 256 bytes. A request that no free block holds gets a new chunk of at least 8 MiB. Best
// fit by size and address; the request takes the end of a block, the rest stays free in front of it; neighbours in a
// chunk merge. When the card is full, idle chunks go back.
#include <algorithm>

#include "cli/models/chunk_cache.h"
#include "cli/models/model.h"
#include "cli/trace/trace.h"

namespace gpupool::cli {
namespace {

constexpr Bytes kRounding = 256;
constexpr Bytes kChunk = 8_MiB;

class PaddleAutoGrowth final : public Model {
 public:
  explicit PaddleAutoGrowth(Bytes card) : cache_(card) {}

  bool allocate(std::uint32_t slot, Bytes bytes, std::uint32_t stream) override {
    const Bytes size = (bytes + kRounding - 1) / kRounding * kRounding;
    const std::uint32_t number = stream == kPlain ? 0 : stream;
    FreeList& list = cache_.list(number);
    BlockNumber block = kNoBlock;
    if (const auto found = list.fitting(size); found != list.end()) {
      block = found->second;
      list.erase(block, cache_.blocks[block]);
    } else {
      block = cache_.chunk(number, std::max(size, kChunk));
    }
    if (block == kNoBlock) return false;
    if (cache_.blocks[block].bytes > size) {
      const BlockNumber end = cache_.blocks.split(block, cache_.blocks[block].bytes - size);
      list.insert(block, cache_.blocks[block]);
      block = end;
    }
    cache_.take(slot, block);
    return true;
  }

  void free(std::uint32_t slot, std::uint32_t) override { cache_.give_back(slot); }
  Bytes reserved() const override { return cache_.reserved(); }
  DriverCalls driver_calls() const override { return cache_.driver_calls(); }

 private:
  ChunkCache cache_;
};

}  // namespace

std::unique_ptr<Model> make_paddle_auto_growth(Bytes card, Bytes) { return std::make_unique<PaddleAutoGrowth>(card); }

}  // namespace gpupool::cli
