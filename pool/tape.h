// The tape: one large range of addresses per (context, device), on which handles are mapped side by side, and the pool
// of blocks on it. It joins the parts: best_fit (which bytes), timelines (when they may be used again), handles (where
// memory is mapped), and walks the ladder from a hole to a growth to a refusal. Thread safe: every public call takes
// the one lock, except where it says otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "pool/accounts.h"
#include "pool/address_table.h"
#include "pool/backing.h"
#include "pool/best_fit.h"
#include "pool/fence.h"
#include "pool/lock_order.h"
#include "pool/reuse.h"
#include "pool/size_histogram.h"
#include "pool/stats.h"
#include "pool/tape_types.h"

namespace gpupool {

/// Where a tape counts, if they are not null.
struct TapeCounts {
  Stats* stats = nullptr;
  SizeHistogram* sizes = nullptr;      // of all requests served
  const Accounts* accounts = nullptr;  // of the blocks' tags
  Account::Writers writers = Account::Writers::kOne;
};

class Tape {
 public:
  /// `backing`, `fence` and what `counts` names must outlive the tape. Reserves addresses; maps nothing yet.
  Tape(const TapeOptions& options, Backing& backing, Fence& fence, const TapeCounts& counts = {});
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// False when the address range could not be had; code in start_error().
  bool started() const { return start_error_ == 0; }
  int start_error() const { return start_error_; }

  /// Maps up to `bytes` more of the pre-reservation (options.size). Returns bytes still missing; 0 when done or when no
  /// more can be had.
  std::uint64_t prefill(std::uint64_t bytes);

  Grant allocate(const Request& request);
  /// The last rung, once the card and the driver have nothing: memory of the host (options.overflow). Slow to use.
  Grant allocate_overflow(Request request);
  /// Counts a request that its program was refused: what allocate() could not serve, others may.
  void count_refusal(Verdict verdict);

  /// A free of this address comes: starts to bring what it will read into the cache. Without the lock.
  void prefetch(std::uint64_t address) const {
    outline_.prefetch(static_cast<Granules>((address - range_) / kGranuleBytes));
  }
  /// Gives a block back on `line` (the stream of a stream-ordered free, or kContextLine for a plain one). kAwaited:
  /// waits with the lock released, as long as it takes, but not for a record that an open capture puts off.
  Freed free(std::uint64_t address, Line line, WorkOnIt work = WorkOnIt::kInFlight);

  /// Lock-free: does this address lie on the tape?
  bool contains(std::uint64_t address) const { return addresses_.contains(address); }

  /// The block that holds `address` (which may point inside it). False: none is live there.
  bool find(std::uint64_t address, BlockInfo& info) const;
  /// Marks the blocks that have a part of these bytes as ones that others may reach: after its free nobody else gets a
  /// block's memory as long as they do. False: there are none. With kNone it only tells that.
  bool share(std::uint64_t address, Sharing sharing, std::uint64_t bytes = 1);
  /// Nobody reaches the block at `address`, live or freed, any more of those that Sharing::kAnnounced stands for.
  /// False: it is none that was kept for them.
  bool release(std::uint64_t address);
  /// Calls visit(handle, address of its first byte) for each handle below the live block that holds `address`, in
  /// order, until it answers false; under the lock. False: no block there.
  using HandleVisit = std::function<bool(const Handle& handle, std::uint64_t begin)>;
  bool visit_handles(std::uint64_t address, const HandleVisit& visit) const;

  /// The line of a stream; adds it when new. `per_thread`: only its own thread can record on it, so records are never
  /// put off.
  Line line_of(StreamRef stream, bool per_thread);
  /// The stream ends: its fragments belong to anyone from now on, covered by a record made here or, if the stream is
  /// gone already, by one of the whole context.
  void stream_ending(StreamRef stream, StreamEnd end = StreamEnd::kAhead);

  /// Held by the caller around the real begin-capture call, so that no record or wait can fall into it.
  using Mutex = RankedMutex<LockRank::kTape>;
  std::unique_lock<Mutex> hold() const { return std::unique_lock<Mutex>(mutex_); }
  /// Does a thread wait for the lock? Without it.
  bool is_wanted() const { return mutex_.wanted(); }
  /// The last open capture of the process has ended: make the records that were put off.
  void captures_ended();

  /// Gives wholly free, completed handles back to the card but holds at least `keep` bytes. Returns bytes given back.
  std::uint64_t trim(std::uint64_t keep);

  /// Memory is wanted elsewhere: waits on the host, with the lock released, for the plain frees so far. For the calling
  /// thread's own (Freed::record, 0: none) as long as it takes, as the driver's own free would have; for others' not.
  void settle(std::uint64_t own_free);

  /// The context is gone or going, all its work is done: unmap and release everything. Later frees answer kNotABlock.
  /// The addresses are given back, too, unless there are stream-ordered blocks.
  void retire();

  const Stats& stats() const { return stats_; }
  /// The holes in the card's memory.
  HoleSummary holes() const;
  /// All live blocks, by address; nothing of the tape may be called in `visit`.
  void visit_blocks(const std::function<void(const BlockInfo&)>& visit) const;
  /// Their bytes. Reads the statistics only.
  std::uint64_t free_bytes() const;
  const TapeOptions& options() const { return options_; }

  /// Recomputes every invariant of every part; names the first that is broken, or returns nullptr. Cost: O(n).
  const char* validate() const;

 private:
  struct Parts;

  int reserve();

  struct Found;  // a part of a hole, ready for its new owner

  bool place_of(std::uint64_t address, Granules& place) const;
  std::uint64_t address_of(Granules place) const;
  BestFit::Hole later_recent_for(Granules size, const Request& request) const;
  Grant search(Granules size, const Request& request);
  bool from_best_fit(Granules size, const Request& request, Found& found);
  bool from_hole(Granules size, const Request& request, Effort last, Found& found);
  bool has_to_spare() const;
  bool from_fits(Granules size, const Request& request, Effort effort, Found& found);
  bool from_largest(Granules size, const Request& request, Effort effort, Found& found);
  bool by_patience(Granules size, const Request& request, Found& found);
  bool by_growth(Granules size, const Request& request, unsigned patience_ms, Found& found);
  bool waits_for_own_free(const Request& request) const;
  std::uint64_t oldest_own_free(Granules size, const Request& request) const;
  void nap();
  bool wait_unlocked(Line line, std::uint64_t record, unsigned longest_ms);
  bool wait_for_others();
  bool await(Line line, std::uint64_t record, int& error);
  enum class Room : std::uint8_t { kHeld, kHeldAndAllowed };  // the latter: with what could still be taken
  bool fits(Granules size, Room room) const;
  bool may_ask(const Request& request) const;
  bool is_located(Range hole, const Request& request) const;
  Range located(Range hole, const Request& request) const;
  bool may_split(Range hole, Granules size) const;
  Block block_for(Granules size, const Request& request) const;
  void count_served(std::uint64_t bytes, const Request& request);
  std::uint16_t count_freed(Range range, std::uint64_t requested, std::uint16_t tag);
  void after_free(Sharing sharing);
  Account* account_of(std::uint16_t tag) const { return accounts_ ? accounts_->of(tag) : nullptr; }
  std::uint64_t serve(const BestFit::Hole& hole, Range part, const Request& request);
  std::uint64_t serve(const Found& found, const Request& request);
  bool block_at(std::uint64_t address, BestFit::Owned& owned) const;
  BlockInfo info_of(const BestFit::Owned& owned) const;
  void note_holes();

  mutable Mutex mutex_;
  TapeOptions options_;
  Backing& backing_;
  Fence& fence_;
  std::unique_ptr<Stats> own_stats_;  // null when the owner gave a place for them
  Stats& stats_;
  SizeHistogram* const sizes_;
  const Accounts* const accounts_;
  const Account::Writers writers_;
  AddressTable addresses_;
  std::uint64_t range_ = 0;  // first address of the reservation, 0 where each piece brings its own
  int start_error_ = 0;
  Segments::Outline outline_;
  std::unique_ptr<Parts> parts_;  // null once retired, or when there was no range to be had
};

}  // namespace gpupool
