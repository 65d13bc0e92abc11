// See load.h.
#include "tests/load/load.h"

#include <algorithm>
#include <chrono>
#include <map>

namespace gpupool::load {
namespace {

// The card's memory is looked at whenever more is live than ever, and now and then: asking takes longer than
// allocating.
constexpr std::uint64_t kRequestsPerSample = 16;

class Player {
 public:
  Player(const Runtime& runtime, const cli::Trace& trace, const Settings& settings)
      : runtime_(runtime),
        trace_(trace),
        settings_(settings),
        contents_(runtime, settings.fill),
        blocks_(trace.slots),
        streams_(std::max(settings.streams.value_or(trace.streams), 1u)) {
    for (cudaStream_t& stream : streams_)
      runtime_.check(runtime_.cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    used_before_ = used_bytes();
  }

  ~Player() {
    for (const cudaStream_t stream : streams_) runtime_.cudaStreamDestroy(stream);
  }

  Outcome play() {
    const auto start = std::chrono::steady_clock::now();
    for (const cli::Event& event : trace_.events) {
      if (outcome_.events == settings_.limit) break;
      ++outcome_.events;
      event.bytes ? allocate(event) : free(blocks_[event.slot]);
    }
    for (Block& block : blocks_) {
      if (block.address) free(block);
    }
    contents_.settle();
    outcome_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    outcome_.checked_bytes = contents_.checked_bytes();
    outcome_.wrong_bytes = contents_.wrong_bytes();
    outcome_.findings = contents_.findings();
    return std::move(outcome_);
  }

 private:
  std::uint64_t used_bytes() const {
    std::size_t free = 0;
    std::size_t total = 0;
    runtime_.check(runtime_.cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return total - free;
  }

  void allocate(const cli::Event& event) {
    Block& block = blocks_[event.slot];
    block.id = requests_++;
    block.bytes = std::max<std::uint64_t>(static_cast<std::uint64_t>(double(event.bytes) * settings_.scale), 1);
    const std::uint64_t wanted = settings_.streams || event.stream == cli::kPlain ? block.id : event.stream;
    block.stream = streams_[wanted % streams_.size()];
    void* address = nullptr;
    if (settings_.api == Api::async)
      runtime_.check(runtime_.cudaMallocAsync(&address, block.bytes, block.stream), "cudaMallocAsync");
    else
      runtime_.check(runtime_.cudaMalloc(&address, block.bytes), "cudaMalloc");
    block.address = static_cast<char*>(address);
    note_live(block);
    contents_.write(block);
    if (live_bytes_ == outcome_.live_peak_bytes || requests_ % kRequestsPerSample == 0)
      outcome_.used_peak_bytes = std::max(outcome_.used_peak_bytes, used_bytes() - used_before_);
  }

  void free(Block& block) {
    contents_.read(block);
    if (settings_.api == Api::async)
      runtime_.check(runtime_.cudaFreeAsync(block.address, block.stream), "cudaFreeAsync");
    else
      runtime_.check(runtime_.cudaFree(block.address), "cudaFree");
    live_.erase(block.address);
    live_bytes_ -= block.bytes;
    block = Block{};
  }

  void note_live(const Block& block) {
    const auto next = live_.lower_bound(block.address);
    const bool before = next != live_.begin() && std::prev(next)->second > block.address;
    const bool behind = next != live_.end() && next->first < block.address + block.bytes;
    outcome_.overlaps += before || behind;
    live_.insert_or_assign(block.address, block.address + block.bytes);
    live_bytes_ += block.bytes;
    outcome_.live_peak_bytes = std::max(outcome_.live_peak_bytes, live_bytes_);
  }

  const Runtime& runtime_;
  const cli::Trace& trace_;
  const Settings& settings_;
  Contents contents_;
  std::vector<Block> blocks_;  // by the slots of the trace
  std::vector<cudaStream_t> streams_;
  std::map<const char*, const char*> live_;  // begin and end
  std::uint64_t live_bytes_ = 0;
  std::uint64_t requests_ = 0;
  std::uint64_t used_before_ = 0;
  Outcome outcome_;
};

}  // namespace

Outcome play(const Runtime& runtime, const cli::Trace& trace, const Settings& settings) {
  return Player(runtime, trace, settings).play();
}

}  // namespace gpupool::load
