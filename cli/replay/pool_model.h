// gpupool's own pool as a Model: the tape of pool/, on a card that exists only as books, where all work is complete at
// once.
#pragma once
#include <cstdint>
#include <vector>

#include "cli/models/model.h"
#include "config/options.h"
#include "pool/memory_backing.h"
#include "pool/memory_fence.h"
#include "pool/tape.h"

namespace gpupool::cli {

class PoolModel final : public Model {
 public:
  PoolModel(const TapeOptions& options, Bytes card, Placement placement);

  bool allocate(std::uint32_t slot, Bytes bytes, std::uint32_t stream) override;
  void free(std::uint32_t slot, std::uint32_t stream) override;
  Bytes reserved() const override { return tape_.stats().reserved.current(); }
  DriverCalls driver_calls() const override;

  /// Of a live block.
  std::uint64_t address(std::uint32_t slot) const { return addresses_[slot]; }
  const Stats& stats() const { return tape_.stats(); }
  const char* validate() const { return tape_.validate(); }

 private:
  Line line_of(std::uint32_t stream);

  MemoryBacking backing_;
  MemoryFence fence_;
  Tape tape_;
  std::vector<std::uint64_t> addresses_;  // by slot
  std::vector<Line> lines_;               // by stream; kContextLine: not seen yet
};

}  // namespace gpupool::cli
