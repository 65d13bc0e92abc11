// A program's requests and frees in their order, whatever they were recorded by: what the readers make and the replay
// plays. A block has a small number (its slot) as long as it lives; slots and streams are dense, so that whoever plays
// the trace keeps plain arrays. Built by one TraceBuilder, constant afterwards.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace gpupool::cli {

/// The stream of a request that is not stream-ordered (cudaMalloc, cudaFree).
inline constexpr std::uint32_t kPlain = std::numeric_limits<std::uint32_t>::max();

/// Larger requests are no requests but a file that is something else.
inline constexpr std::uint64_t kLargestRequest = std::uint64_t{1} << 50;

struct Event {
  std::uint64_t bytes = 0;  // 0: the block is freed
  std::uint32_t slot = 0;
  std::uint32_t stream = kPlain;
};

struct Trace {
  std::string name;
  std::string format;
  std::vector<Event> events;
  std::vector<std::string> notes;  // what was left out or added, one line each
  std::uint64_t requests = 0;
  std::uint32_t slots = 0;
  std::uint32_t streams = 0;
};

/// What a reader calls: names of blocks and streams are its own, any 64-bit numbers.
class TraceBuilder {
 public:
  using Name = std::uint64_t;

  /// False: a block of this name is live. A request for nothing is remembered and makes no event.
  bool allocate(Name block, std::uint64_t bytes, std::optional<Name> stream);
  /// False: no block of this name is live. Without a stream the block is freed on the one it was allocated on.
  bool free(Name block, std::optional<Name> stream = std::nullopt);
  bool is_live(Name block) const { return live_.contains(block); }

  void note(std::string line) { trace_.notes.push_back(std::move(line)); }
  Trace finish(std::string name, std::string format);

 private:
  struct Block {
    std::uint64_t bytes = 0;
    std::uint32_t slot = 0;
    std::uint32_t stream = kPlain;
  };
  std::uint32_t stream_number(std::optional<Name> stream);

  Trace trace_;
  std::unordered_map<Name, Block> live_;
  std::unordered_map<Name, std::uint32_t> streams_;
  std::vector<std::uint32_t> spare_slots_;
};

}  // namespace gpupool::cli
