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

/// Who served a request.
enum class Served : std::uint8_t { by_pool, by_driver };

/// What is known of an event beyond what a replay needs; 0 where the trace does not tell.
struct Seen {
  std::uint64_t time_ns = 0;  // since the trace began; never less than that of the event before
  std::uint64_t address = 0;
  std::uint32_t thread = 0;  // dense, in the order of appearance
  std::uint16_t call = 0;    // index into Trace::calls
  Served served = Served::by_pool;
  bool fenced = false;  // a wait was put on the device before the reuse
};

struct Event {
  std::uint64_t bytes = 0;  // 0: the block is freed
  std::uint32_t slot = 0;
  std::uint32_t stream = kPlain;
  Seen seen = {};
};

/// The rows of pool/trace_marks.def.
enum class MarkKind : std::uint8_t {
#define MARK(name, sentence) name,
#include "pool/trace_marks.def"
#undef MARK
};

/// Something rare that happened between two events.
struct Mark {
  std::uint64_t time_ns = 0;
  std::uint64_t event = 0;     // index of the event it came before; events.size() at the end
  std::uint64_t bytes = 0;     // taken, moved, given back, asked for
  std::uint64_t count = 0;     // handles; of pool_full the Verdict of pool/tape_types.h
  std::uint64_t reserved = 0;  // what the pool held afterwards
  std::uint16_t call = 0;
  MarkKind kind = MarkKind::growth;
};

/// The pool and the process that were recorded; empty and 0 where the trace does not tell.
struct Origin {
  std::uint64_t pid = 0;
  std::string executable;
  std::string host;
  std::string rank;
  std::string strategy;
  std::uint32_t device = 0;  // CUDA ordinal
  std::string card;
  std::string uuid;
  std::uint64_t card_bytes = 0;
  std::uint64_t limit = 0;         // most that the pool might hold
  std::uint64_t handle = 0;        // pool.handle, 0: chosen by the pool
  std::int64_t began_unix_ns = 0;  // the time of day of time 0
};

struct Trace {
  std::string name;
  std::string format;
  std::vector<Event> events;
  std::vector<Mark> marks;                        // in order
  std::vector<std::string> calls{std::string{}};  // names of the driver's functions; the first stands for "unknown"
  std::vector<std::string> notes;                 // what was left out or added, one line each
  Origin origin;
  std::uint64_t requests = 0;
  std::uint64_t dropped = 0;  // records that the recorder had no room for
  std::uint32_t slots = 0;
  std::uint32_t streams = 0;
  std::uint32_t threads = 0;
  bool timed = false;   // events have times
  bool placed = false;  // events have addresses
};

/// What a reader calls: names of blocks and streams are its own, any 64-bit numbers.
class TraceBuilder {
 public:
  using Name = std::uint64_t;

  /// False: a block of this name is live. A request for nothing is remembered and makes no event.
  bool allocate(Name block, std::uint64_t bytes, std::optional<Name> stream, const Seen& seen = {});
  /// False: no block of this name is live. Without a stream the block is freed on the one it was allocated on.
  /// Its address and its server are those of its request.
  bool free(Name block, std::optional<Name> stream = std::nullopt, Seen seen = {});
  bool is_live(Name block) const { return live_.contains(block); }
  /// After the events so far.
  void mark(Mark mark);

  /// The dense number of a thread.
  std::uint32_t thread_number(Name thread);
  /// The index of a call's name.
  std::uint16_t call_number(const std::string& name);

  Trace& trace() { return trace_; }
  void note(std::string line) { trace_.notes.push_back(std::move(line)); }
  Trace finish(std::string name, std::string format);

 private:
  struct Block {
    std::uint64_t bytes = 0;
    std::uint32_t slot = 0;
    std::uint32_t stream = kPlain;
    std::uint64_t address = 0;
    Served served = Served::by_pool;
  };
  std::uint32_t stream_number(std::optional<Name> stream);
  void add(std::uint64_t bytes, std::uint32_t slot, std::uint32_t stream, const Seen& seen);
  std::uint64_t not_before_last(std::uint64_t time_ns);

  Trace trace_;
  std::uint64_t last_ns_ = 0;
  std::unordered_map<Name, Block> live_;
  std::unordered_map<Name, std::uint32_t> streams_;
  std::unordered_map<Name, std::uint32_t> threads_;
  std::vector<std::uint32_t> spare_slots_;
};

}  // namespace gpupool::cli
