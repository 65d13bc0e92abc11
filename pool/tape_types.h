// The words of the tape's face: options, requests, grants and answers. Plain values; sizes are bytes.
#pragma once

#include <cstdint>

#include "pool/backing.h"

namespace gpupool {

/// How freed memory may be used again (pool.reuse).
enum class ReusePolicy : std::uint8_t {
  kFence,      // record at the free; at the reuse a stream waits on the device, a plain request looks for what is done
  kSync,       // as kFence; beside that the caller waits on the host before each plain free, where it can
  kQuiescent,  // only memory whose record is known complete
};

/// What pool.guard puts behind a request, at least.
constexpr std::uint64_t kRedZoneBytes = 512;

/// Sizes in bytes, already resolved against the card.
struct TapeOptions {
  std::uint64_t address_space = std::uint64_t{1} << 40;  // reserved addresses; costs nothing
  std::uint64_t size = 0;                                // pre-reserved; prefill() maps it
  std::uint64_t max = ~std::uint64_t{0};                 // cap of what the tape may hold
  std::uint64_t headroom = 0;                            // kept free on the card when growing
  std::uint64_t growth_bytes = std::uint64_t{64} << 20;  // least step of growth
  double growth_factor = 0;     // or: least step as a share of what is held (0.5 for "1.5x"); 0 = use growth_bytes
  bool exact_growth = false;    // auto_growth: least step also bounded by a small share of what is held
  std::uint64_t handle = 0;     // handle size, 0 = choose
  std::uint64_t max_split = 0;  // holes above this are not split for smaller requests; 0 = off
  ReusePolicy reuse = ReusePolicy::kFence;
  std::uint64_t reclaim = 0;     // bytes of plain frees to gather before a fence, as long as the tape can grow
  std::uint64_t overflow = 0;    // host memory to hold where the card is full, at most; 0 = none (pool.overflow)
  std::uint64_t red_zone = 0;    // bytes behind what was asked for that each block has too (pool.guard)
  unsigned host_wait_ms = 1000;  // longest wait on the host, in one request, for holes' own records
};

/// Index of a stream's time line in this tape; valid until the stream is destroyed. kContextLine: plain requests and
/// frees.
using Line = std::uint32_t;
constexpr Line kContextLine = 0;

/// Earlier work on a block that is freed.
enum class WorkOnIt : std::uint8_t {
  kInFlight,  // may still run
  kDone,      // has been waited for by the caller
  kAwaited,   // may still run, and the free returns once it is done
};

/// Who else may reach a block's memory, in rising order of what that asks for after the free.
enum class Sharing : std::uint8_t {
  kNone,
  kEnded,       // nobody any more: used again, but last
  kAnnounced,   // others who say so to the tape's owner: not used again before he calls Tape::release; may leave
  kReferenced,  // others who do not, and hold a reference to the memory itself: not used again; may leave the tape
  kFixed,       // others who hold none: kept where it is until the tape ends
};

/// Whether a stream that ends can still be recorded on.
enum class StreamEnd : std::uint8_t { kAhead, kGone };

struct Request {
  std::uint64_t bytes = 0;   // as the program asked, > 0
  Line line = kContextLine;  // stream-ordered on that line, or plain
  std::uint16_t tag = 0;     // the program's memory pool, for its own accounting
  bool may_wait = true;  // false: no wait may be inserted into the stream (reuse of internal dependencies switched off)
  std::uint64_t own_free = 0;  // Freed::record of the calling thread's last plain free; natively the thread has waited
                               // on the host for that one and all before it, so it may wait for them now
  Location location = Location::kDevice;  // kHost: overflow; the tape sets it
};

enum class Verdict : std::uint8_t { kServed, kCapacity, kFragmentation, kDriverError };

struct Grant {
  Verdict verdict = Verdict::kServed;
  int code = 0;  // the driver's error with kDriverError; CUDA_ERROR_OUT_OF_MEMORY's number is the caller's business
  std::uint64_t address = 0;  // 512-byte aligned
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
  Sharing sharing = Sharing::kNone;
};

enum class FreeResult : std::uint8_t {
  kFreed,
  kNotABlock,  // inside the tape but not the start of a live block: native answers CUDA_ERROR_INVALID_VALUE
};

struct Freed {
  FreeResult result = FreeResult::kFreed;
  int code = 0;  // a sticky driver error met while recording; the block is free all the same
  std::uint64_t requested = 0;
  std::uint64_t record = 0;  // of a plain free: for Request::own_free
  bool done = false;         // no earlier work on the block is left
  std::uint16_t tag = 0;     // where it has no account that the tape counts in
};

/// A picture of the holes at one moment, for reports and verdicts. Bytes.
struct HoleSummary {
  std::uint64_t holes = 0;
  std::uint64_t bytes = 0;
  std::uint64_t largest = 0;
  double external_fragmentation() const { return bytes ? 1.0 - double(largest) / double(bytes) : 0.0; }
};

}  // namespace gpupool
