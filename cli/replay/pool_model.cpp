// See pool_model.h.
#include "cli/replay/pool_model.h"

#include "cli/trace/trace.h"

namespace gpupool::cli {

PoolModel::PoolModel(const TapeOptions& options, Bytes card, Placement placement)
    : backing_({.placement = placement, .granularity = kHandleGranularity, .card_bytes = card}),
      tape_(options, backing_, fence_) {
  while (tape_.prefill(options.size) != 0) {
  }
}

bool PoolModel::allocate(std::uint32_t slot, Bytes bytes, std::uint32_t stream) {
  Request request;
  request.bytes = bytes;
  request.line = line_of(stream);
  const Grant grant = tape_.allocate(request);
  if (!grant.ok()) {
    tape_.count_refusal(grant.verdict);
    return false;
  }
  if (addresses_.size() <= slot) addresses_.resize(slot + std::size_t{1});
  addresses_[slot] = grant.address;
  return true;
}

void PoolModel::free(std::uint32_t slot, std::uint32_t stream) {
  const Line line = line_of(stream);
  const bool waits = line == kContextLine && tape_.options().reuse == ReusePolicy::kSync;
  tape_.free(addresses_[slot], line, waits ? WorkOnIt::kDone : WorkOnIt::kInFlight);
}

Line PoolModel::line_of(std::uint32_t stream) {
  if (stream == kPlain) return kContextLine;
  if (lines_.size() <= stream) lines_.resize(stream + std::size_t{1}, kContextLine);
  if (lines_[stream] == kContextLine) lines_[stream] = tape_.line_of(stream, false);
  return lines_[stream];
}

DriverCalls PoolModel::driver_calls() const {
  using Memory = MemoryBacking::Operation;
  using Time = MemoryFence::Operation;
  DriverCalls calls;
  const bool slabs = backing_.placement() == Placement::kGiven;
  (slabs ? calls.allocate : calls.create) = backing_.calls(Memory::kCreate);
  (slabs ? calls.free : calls.release) = backing_.calls(Memory::kDestroy);
  if (!slabs) {
    calls.map = backing_.calls(Memory::kMap);
    calls.unmap = backing_.calls(Memory::kUnmap);
    calls.created = backing_.bytes(Memory::kCreate);
    calls.mapped = backing_.bytes(Memory::kMap);
    calls.unmapped = backing_.bytes(Memory::kUnmap);
    calls.released = backing_.bytes(Memory::kDestroy);
  }
  calls.record = fence_.calls(Time::kRecord);
  calls.wait = fence_.calls(Time::kWait);
  calls.query = fence_.calls(Time::kQuery);
  return calls;
}

}  // namespace gpupool::cli
