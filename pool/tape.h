// The tape: one large range of addresses per (context, device), on which handles are mapped side by side, and the pool of blocks on it.
// It joins the parts: best_fit (which bytes), timelines (when they may be used again), handles (where memory is mapped), and walks the
// ladder from a hole to a growth to a refusal. Thread safe: every public call takes the one lock, except where it says otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "pool/backing.h"
#include "pool/fence.h"
#include "pool/stats.h"

namespace gpupool {

/// How freed memory may be used again (pool.reuse).
enum class ReusePolicy : std::uint8_t {
  kFence,      // record at the free, wait on the device at the reuse
  kSync,       // a plain free waits on the host, as the driver's own does
  kQuiescent,  // only memory whose record is known complete
};

/// Sizes in bytes, already resolved against the card.
struct TapeOptions {
  std::uint64_t address_space = std::uint64_t{1} << 40;  // reserved addresses; costs nothing
  std::uint64_t size = 0;                                // pre-reserved; never trimmed below by trim(0)... see trim()
  std::uint64_t max = ~std::uint64_t{0};                 // cap of what the tape may hold
  std::uint64_t headroom = 0;                            // kept free on the card when growing
  std::uint64_t growth_bytes = std::uint64_t{64} << 20;  // least step of growth
  double growth_factor = 0;                              // or: least step as a share of what is held (0.5 for "1.5x"); 0 = use growth_bytes
  bool exact_growth = false;                             // auto_growth: grow by what is needed, growth_bytes only caps the step
  std::uint64_t handle = 0;                              // handle size, 0 = choose
  std::uint64_t max_split = 0;                           // holes above this are not split for smaller requests; 0 = off
  ReusePolicy reuse = ReusePolicy::kFence;
  bool overflow_to_host = false;
  std::uint64_t overflow_max = 0;
  unsigned host_wait_ms = 1000;  // longest wait for a hole's own record before growing instead
};

/// Index of a stream's time line in this tape; valid until the stream is destroyed. kContextLine: plain requests and frees.
using Line = std::uint32_t;
constexpr Line kContextLine = 0;

struct Request {
  std::uint64_t bytes = 0;     // as the program asked, > 0
  Line line = kContextLine;    // stream-ordered on that line, or plain
  std::uint16_t tag = 0;       // the program's memory pool, for its own accounting
  bool may_wait = true;        // false: no wait may be inserted into the stream (reuse of internal dependencies switched off)
};

enum class Verdict : std::uint8_t { kServed, kCapacity, kFragmentation, kDriverError };

struct Grant {
  Verdict verdict = Verdict::kServed;
  int code = 0;                    // the driver's error with kDriverError; CUDA_ERROR_OUT_OF_MEMORY's number is the caller's business
  std::uint64_t address = 0;       // 512-byte aligned
  bool ok() const { return verdict == Verdict::kServed; }
};

/// What a live block is. All bytes.
struct BlockInfo {
  std::uint64_t address = 0;
  std::uint64_t requested = 0;
  std::uint64_t bytes = 0;
  std::uint64_t buffer_id = 0;  // new for every allocation, never reused
  std::uint16_t tag = 0;
  bool stream_ordered = false;
  bool pinned = false;
};

enum class FreeResult : std::uint8_t {
  kFreed,
  kNotABlock,  // inside the tape but not the start of a live block: native answers CUDA_ERROR_INVALID_VALUE
};

struct Freed {
  FreeResult result = FreeResult::kFreed;
  int code = 0;  // a sticky driver error met while recording; the block is free all the same
  std::uint64_t requested = 0;
  std::uint64_t bytes = 0;
  std::uint16_t tag = 0;
  bool stream_ordered = false;
};

/// A picture of the holes at one moment, for reports and verdicts. Bytes.
struct HoleSummary {
  std::uint64_t holes = 0;
  std::uint64_t bytes = 0;
  std::uint64_t largest = 0;
  double external_fragmentation() const { return bytes ? 1.0 - double(largest) / double(bytes) : 0.0; }
};

class Tape {
 public:
  /// `backing` and `fence` must outlive the tape. Reserves addresses; maps nothing yet.
  Tape(const TapeOptions& options, Backing& backing, Fence& fence);
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// False when the address range could not be had; code in start_error().
  bool started() const;
  int start_error() const;

  /// Maps up to `bytes` more of the pre-reservation (options.size). Returns bytes still missing; 0 when done or when no more can be had.
  std::uint64_t prefill(std::uint64_t bytes);

  Grant allocate(const Request& request);

  /// Gives a block back on `line` (the stream of a stream-ordered free, or kContextLine for a plain one).
  Freed free(std::uint64_t address, Line line);

  /// Lock-free: does this address lie on the tape?
  bool contains(std::uint64_t address) const;

  /// The block that holds `address` (which may point inside it). False: none is live there.
  bool find(std::uint64_t address, BlockInfo& info) const;
  /// The same by its first byte, marking it as exported: it keeps its memory until the tape ends, even after the free.
  bool pin(std::uint64_t address);

  /// The line of a stream; adds it when new. `per_thread`: only its own thread can record on it, so records are never put off.
  Line line_of(StreamRef stream, bool per_thread);
  /// The stream is about to be destroyed: its fragments belong to anyone from now on, covered by a record made here.
  void stream_ending(StreamRef stream);

  /// Held by the caller around the real begin-capture call, so that no record or wait can fall into it.
  std::unique_lock<std::mutex> hold() const { return std::unique_lock<std::mutex>(mutex_); }
  /// The last open capture of the process has ended: make the records that were put off.
  void captures_ended();

  /// Gives wholly free, completed handles back to the card until at most `keep` bytes are held. Returns bytes given back.
  std::uint64_t trim(std::uint64_t keep);

  /// The context is gone or going, all its work is done: unmap and release everything. Later frees answer kNotABlock.
  void retire();

  const Stats& stats() const { return stats_; }
  HoleSummary holes() const;
  /// The same with only the bytes another request of `line` could have without a wait... see docs; bytes free on the tape.
  std::uint64_t free_bytes() const;
  const TapeOptions& options() const { return options_; }

  /// Recomputes every invariant of every part; names the first that is broken, or returns nullptr. Cost: O(n).
  const char* validate() const;

 private:
  struct Parts;
  mutable std::mutex mutex_;
  TapeOptions options_;
  Stats stats_;
  std::uint64_t range_begin_ = 0;
  std::uint64_t range_end_ = 0;
  std::unique_ptr<Parts> parts_;
};

}  // namespace gpupool
