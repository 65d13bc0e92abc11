#include "pool/tape.h"

#include <time.h>

#include <algorithm>
#include <bit>

#include "pool/growth.h"
#include "pool/host_wait.h"

namespace gpupool {
namespace {

// How many equal fits are looked at for one that needs no fence, and how many larger ones when none may be used yet.
constexpr unsigned kEqualFits = 8;
constexpr unsigned kLargerFits = 8;
constexpr unsigned kRecentFits = 4;  // the same among blocks freed lately
constexpr unsigned kSpareShare = 2;  // this part of what is held, wholly free, is memory to spare

// Waiting with the lock released.
constexpr timespec kNap{0, 20'000};  // 20 us between two looks
constexpr unsigned kForEver_ms = ~0u;
constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr unsigned kBeforeGrowth_ms = 100;  // in which a GPU that works along catches up with the threads
constexpr unsigned kBeforeMoves_ms = 500;   // the same for a stream's request: only handles that are to move wait
constexpr unsigned kForOthers = 5;          // times host_wait_ms, for what others have freed

std::uint64_t bytes_of_64(std::uint64_t granules) { return granules * kGranuleBytes; }

// BUFFER_IDs start far above those that the driver gives to its own allocations.
std::atomic<std::uint64_t> last_buffer_id{std::uint64_t{1} << 48};

}  // namespace

struct Tape::Parts {
  Parts(const TapeOptions& options, Backing& backing, Fence& fence, Stats& stats, AddressTable& addresses,
        Granules span)
      : space(span, granules_for(backing.granularity())),
        timelines(fence, options.reuse, space.fragments(), stats),
        reuse(space, timelines),
        growth({options, backing, space, handles, addresses, reuse, stats}) {}

  BestFit space;
  Handles handles;
  Timelines timelines;
  Reuse reuse;
  Growth growth;
};

struct Tape::Found {
  BestFit::Hole hole;
  Range part;
};

Tape::Tape(const TapeOptions& options, Backing& backing, Fence& fence, const TapeCounts& counts)
    : options_(options),
      backing_(backing),
      fence_(fence),
      own_stats_(counts.stats ? nullptr : std::make_unique<Stats>()),
      stats_(counts.stats ? *counts.stats : *own_stats_),
      sizes_(counts.sizes),
      accounts_(counts.accounts),
      writers_(counts.writers) {
  std::uint64_t unit = backing.granularity();
  options_.address_space = std::min(options.address_space, kMaxTapeBytes) / unit * unit;
  if (!backing.has_host_memory()) options_.overflow = 0;
  if (backing.placement() == Placement::kChosen) {
    start_error_ = reserve();
    if (start_error_ == 0 && !addresses_.add(range_, options_.address_space, 0)) start_error_ = -1;
    if (start_error_ != 0) return;
  }
  parts_ = std::make_unique<Parts>(options_, backing, fence, stats_, addresses_, granules_for(options_.address_space));
  parts_->space.show_in(outline_);
}

Tape::~Tape() { retire(); }

// Where addresses are scarce (a limit, a tool that keeps a shadow of them) a shorter range does.
int Tape::reserve() {
  const std::uint64_t enough =
      2 * std::min(std::min(options_.max, kMaxTapeBytes) + options_.overflow, kMaxTapeBytes / 2);
  for (;;) {
    const int error = backing_.reserve(options_.address_space, range_).code;
    if (error == 0 || options_.address_space / 2 < enough) return error;
    options_.address_space = options_.address_space / 2 / backing_.granularity() * backing_.granularity();
  }
}

std::uint64_t Tape::prefill(std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (!parts_) return 0;
  const SlowPath spent(stats_);
  return parts_->growth.prefill(bytes);
}

// Then the quickest choice will do. Else blocks freed lately join their neighbours, so that the tightest hole is seen.
inline bool Tape::has_to_spare() const {
  return bytes_of_64(parts_->space.wholly_free_granules()) > stats_.reserved.current() / kSpareShare;
}

inline bool Tape::place_of(std::uint64_t address, Granules& place) const {
  if (range_ == 0) [[unlikely]]
    return addresses_.place_of(address, place);
  const std::uint64_t offset = address - range_;
  place = static_cast<Granules>(offset / kGranuleBytes);
  return offset < options_.address_space;
}

inline std::uint64_t Tape::address_of(Granules place) const {
  return range_ != 0 ? range_ + bytes_of(place) : addresses_.address_of(place);
}

// Where another stream has freed the oldest block of that size, one of its own may be among the next. No segment: there
// is none.
BestFit::Hole Tape::later_recent_for(Granules size, const Request& request) const {
  BestFit::Hole found;
  parts_->space.visit_recent(size, kRecentFits, [&](const BestFit::Hole& hole) {
    if (!parts_->reuse.needs_nothing(hole, request) || !is_located(hole.range, request)) return false;
    found = hole;
    return true;
  });
  return found;
}

// The ladder's first step, without the ladder. Where the best fit needs something and there is memory to spare, an
// equal one may not, or the driver says that its work is done.
bool Tape::from_best_fit(Granules size, const Request& request, Found& found) {
  const Range fit = parts_->space.best_fit(size);
  if (fit.empty() || options_.max_split != 0 || !is_located(fit, request)) return false;
  found = {parts_->space.hole_from(fit.begin), {fit.begin, fit.begin + size}};
  if (parts_->reuse.ready(found.hole, found.part, request, Effort::kLook)) return true;
  if (!has_to_spare()) return false;
  if (from_fits(size, request, Effort::kLook, found)) return true;
  found = {parts_->space.hole_from(fit.begin), {fit.begin, fit.begin + size}};
  return may_ask(request) && parts_->reuse.ready(found.hole, found.part, request, Effort::kAsk);
}

// The ladder's first rungs: a hole that is clean for this request, a look whether records are complete, a fence. Among
// equal fits the one that costs least is taken; a larger hole only when no equal one may be used as it is, for a fence
// makes the requester's later work wait for somebody else's.
bool Tape::from_hole(Granules size, const Request& request, Effort last, Found& found) {
  parts_->space.settle_recent();
  const bool may_fence = request.line != kContextLine;
  for (Effort effort = last == Effort::kBlock ? last : Effort::kLook; effort <= last;
       effort = Effort(int(effort) + 1)) {
    if (effort == Effort::kFence && !may_fence) continue;
    if (from_fits(size, request, effort, found)) return true;
    if ((effort != Effort::kLook || last == Effort::kLook) && from_largest(size, request, effort, found)) return true;
  }
  return false;
}

bool Tape::from_fits(Granules size, const Request& request, Effort effort, Found& found) {
  const Range smallest = located(parts_->space.best_fit(size), request);
  unsigned equal = 0;
  unsigned larger = 0;
  for (Range fit = smallest; !fit.empty(); fit = located(parts_->space.following(fit), request)) {
    if (fit.size() != smallest.size() && effort == Effort::kLook) break;
    if (fit.size() == smallest.size() ? ++equal > kEqualFits : ++larger > kLargerFits) break;
    if (!may_split(fit, size)) continue;
    found = {parts_->space.hole_from(fit.begin), {fit.begin, fit.begin + size}};
    if (effort == Effort::kLook) {
      if (parts_->reuse.ready(found.hole, found.part, request, effort)) return true;
    } else {
      found.part = parts_->reuse.first_ready(found.hole, size, request, effort);
      if (!found.part.empty()) return true;
    }
  }
  return false;
}

// Where memory was reserved up front the largest hole is often one that nothing has used yet.
bool Tape::from_largest(Granules size, const Request& request, Effort effort, Found& found) {
  const Range largest = parts_->space.largest();
  if (largest.size() < size || !may_split(largest, size) || located(largest, request) != largest) return false;
  found.hole = parts_->space.hole_from(largest.begin);
  found.part = parts_->reuse.first_ready(found.hole, size, request, effort);
  return !found.part.empty();
}

// Does it lie in the kind of memory that the request is for?
bool Tape::is_located(Range hole, const Request& request) const {
  return (hole.begin < parts_->growth.device_begin()) == (request.location == Location::kHost);
}

// `hole`, or the next one in the order of the index that is.
Range Tape::located(Range hole, const Request& request) const {
  while (!hole.empty() && !is_located(hole, request)) hole = parts_->space.following(hole);
  return hole;
}

// pool.max_split: large holes are kept whole for large requests. The hole at the end of the tape, where growth lands,
// is exempt.
bool Tape::may_split(Range hole, Granules size) const {
  if (options_.max_split == 0 || bytes_of(hole.size()) <= options_.max_split || bytes_of(size) > options_.max_split)
    return true;
  Range tail = parts_->space.last_gap();
  return tail.empty() || hole.end == tail.begin;
}

inline void Tape::note_holes() {
  stats_.holes.set(parts_->space.hole_count());
  stats_.needed.set(parts_->handles.device_bytes() + parts_->handles.host_bytes() -
                    bytes_of_64(parts_->space.wholly_free_granules()));
}

inline Block Tape::block_for(Granules size, const Request& request) const {
  Block block;
  block.slack = static_cast<std::uint32_t>(bytes_of(size) - options_.red_zone - request.bytes);
  block.tag = request.tag;
  // A stream without a line has a pool. Each looked at for itself: both at once, as one word that was written in parts
  // a moment ago, would wait for the parts to arrive.
  const bool has_line = request.line != kContextLine;
  const bool has_pool = block.tag != 0;
  block.stream_ordered = has_line | has_pool;
  return block;
}

// All but what goes by the holes, which a block freed lately is not one of.
[[gnu::always_inline]] inline void Tape::count_served(std::uint64_t bytes, const Request& request) {
  Stats& stats = stats_;
  stats.requests.add(1);
  stats.blocks.add(1);
  stats.live.add(bytes);
  stats.requested.add(request.bytes);
  if (sizes_) sizes_->add(request.bytes);
  if (Account* account = account_of(request.tag)) account->add(request.bytes, writers_);
}

// The tag, where it has no account.
[[gnu::always_inline]] inline std::uint16_t Tape::count_freed(Range range, std::uint64_t requested, std::uint16_t tag) {
  Stats& stats = stats_;
  stats.frees.add(1);
  stats.blocks.subtract(1);
  stats.live.subtract(bytes_of(range.size()));
  stats.requested.subtract(requested);
  if (range.begin < parts_->growth.device_begin()) [[unlikely]]
    stats.overflow_live.subtract(bytes_of(range.size()));
  Account* account = account_of(tag);
  if (account == nullptr) return tag;
  account->subtract(requested, writers_);
  return 0;
}

// More than a recent block has come of it.
void Tape::after_free(Sharing sharing) {
  if (sharing != Sharing::kNone) {
    const SlowPath spent(stats_);
    parts_->growth.regain_much();
  }
  note_holes();
}

[[gnu::always_inline]] inline std::uint64_t Tape::serve(const BestFit::Hole& hole, Range part, const Request& request) {
  BestFit& space = parts_->space;
  if (request.line != kContextLine && space.freed_on(hole, part, request.line)) stats_.same_stream_reuses.add(1);
  space.take(hole, part, block_for(part.size(), request));
  count_served(bytes_of(part.size()), request);
  if (part.begin < parts_->growth.device_begin()) [[unlikely]] {
    stats_.overflows.add(1);
    stats_.overflow_live.add(bytes_of(part.size()));
  }
  note_holes();
  return address_of(part.begin);
}

std::uint64_t Tape::serve(const Found& found, const Request& request) { return serve(found.hole, found.part, request); }

// pool.reclaim: looking whether plain frees are done is only worth its cost once enough has gathered.
bool Tape::may_ask(const Request& request) const {
  return request.line != kContextLine || stats_.unfenced.current() >= options_.reclaim;
}

bool Tape::by_growth(Granules size, const Request& request, unsigned patience_ms, Found& found) {
  parts_->space.settle_recent();
  parts_->timelines.grant_patience(patience_ms);
  const auto extends = [&](Effort effort) {
    found.part = parts_->growth.extend(size, request, effort);
    if (found.part.empty()) return false;
    found.hole = parts_->space.hole_at(found.part.begin);
    return parts_->reuse.ready(found.hole, found.part, request, Effort::kFence);
  };
  if (parts_->growth.regain_much() && from_hole(size, request, Effort::kFence, found)) return true;
  // Before handles are waited for that would then move, a hole that would do as it is.
  const auto serves = [&] {
    if (extends(Effort::kAsk)) return true;
    const bool moves = parts_->growth.would_wait();
    return from_hole(size, request, Effort::kBlock, found) || (moves && extends(Effort::kBlock));
  };
  return serves() || (parts_->growth.regain(Effort::kBlock) && serves());
}

// Natively the thread has waited on the host at its own plain frees, so it may wait for them now.
bool Tape::waits_for_own_free(const Request& request) const {
  return request.line == kContextLine && request.own_free != 0;
}

// Among the holes that fit, the free that will be complete first; the GPU has later work to go on with meanwhile.
std::uint64_t Tape::oldest_own_free(Granules size, const Request& request) const {
  std::uint64_t oldest = 0;
  unsigned looked_at = 0;
  for (Range fit = located(parts_->space.best_fit(size), request);
       !fit.empty() && ++looked_at <= kEqualFits + kLargerFits; fit = located(parts_->space.following(fit), request)) {
    if (!may_split(fit, size)) continue;
    const BestFit::Hole hole = parts_->space.hole_from(fit.begin);
    const std::uint64_t record = parts_->reuse.own_free_before(hole, {fit.begin, fit.begin + size}, request);
    if (record != 0 && (oldest == 0 || record < oldest)) oldest = record;
  }
  return oldest;
}

// The caller holds the lock, which is released meanwhile: the tape may have been retired when this returns. Asleep by
// the clock that nobody sets; waits on a condition variable may go by the other one.
void Tape::nap() {
  mutex_.unlock();
  nanosleep(&kNap, nullptr);
  mutex_.lock();
}

// With the lock released, so that other threads can submit the work that this one waits for. False: not complete in
// time, or nobody can tell (a capture, a lost context), or the tape was retired meanwhile.
bool Tape::wait_unlocked(Line line, std::uint64_t record, unsigned longest_ms) {
  const HostWait wait(stats_);
  for (;;) {
    parts_->timelines.forget_pending();
    const Progress progress = parts_->timelines.ask(line, record);
    if (progress == Progress::kDone) return true;
    const bool pending = progress == Progress::kPending;
    if (!pending && longest_ms != kForEver_ms) return false;
    // A record that covers later work too may wait for this thread's own next steps.
    const bool endless = longest_ms == kForEver_ms && pending && parts_->timelines.is_exact(line, record);
    const unsigned limit_ms = longest_ms == kForEver_ms && !endless ? options_.host_wait_ms : longest_ms;
    if (limit_ms != kForEver_ms && wait.so_far() >= kNsPerMs * limit_ms) {
      if (pending) parts_->timelines.waited_in_vain(line, record);
      return false;
    }
    nap();
    if (!parts_) return false;
  }
}

// Natively the thread that freed has waited, and told this one afterwards, or the stream that freed is waited for at
// the free, which here was recorded late. But what is waited for may be waiting for this thread: so there is an end,
// and no second time before what was waited for in vain is done.
bool Tape::wait_for_others() {
  const std::uint64_t end = now_ns() + kNsPerMs * kForOthers * options_.host_wait_ms;
  bool waited = false;
  for (Line line = 0; parts_ && line < parts_->timelines.lines(); ++line) {
    Timelines& timelines = parts_->timelines;
    const std::uint64_t newest = timelines.newest(line);
    const std::uint64_t now = now_ns();
    if (now >= end) break;
    if (timelines.is_given_up(line) || timelines.ask(line, newest) != Progress::kPending) continue;
    if (wait_unlocked(line, newest, static_cast<unsigned>((end - now) / kNsPerMs))) {
      waited = true;
    } else if (parts_) {
      timelines.give_up(line, newest);
    }
  }
  return waited;
}

void Tape::settle(std::uint64_t own_free) {
  std::lock_guard lock(mutex_);
  if (!parts_) return;
  parts_->timelines.forget_pending();
  if (own_free != 0 && !parts_->timelines.complete(kContextLine, own_free))
    wait_unlocked(kContextLine, own_free, kForEver_ms);
  if (parts_) wait_for_others();
}

// Would it fit if everything free lay in one piece and were done?
bool Tape::fits(Granules size, Room room) const {
  const std::uint64_t more = room == Room::kHeldAndAllowed ? parts_->growth.allowance() : 0;
  const std::uint64_t limit = std::min(options_.max, stats_.reserved.current() + more);
  return stats_.live.current() - stats_.overflow_live.current() + bytes_of(size) <= limit;
}

// No hole that is there can be had at once: a moment's wait, growth, a longer wait. Memory before speed.
bool Tape::by_patience(Granules size, const Request& request, Found& found) {
  const SlowPath spent(stats_);
  const bool own = waits_for_own_free(request);
  const unsigned moment_ms =
      std::min(request.line == kContextLine ? kBeforeGrowth_ms : kBeforeMoves_ms, options_.host_wait_ms);
  if (own && moment_ms != 0) {
    const std::uint64_t record = oldest_own_free(size, request);
    if (record != 0 && !parts_->timelines.is_stuck(kContextLine, record) &&
        wait_unlocked(kContextLine, record, moment_ms) && from_hole(size, request, Effort::kFence, found))
      return true;
  }
  if (parts_ && by_growth(size, request, moment_ms, found)) return true;
  const auto grows = [&] { return by_growth(size, request, options_.host_wait_ms, found); };
  if (parts_ && options_.host_wait_ms > moment_ms && grows()) return true;
  if (parts_ && own && wait_unlocked(kContextLine, request.own_free, kForEver_ms) && grows()) return true;
  return parts_ && fits(size, Room::kHeldAndAllowed) && wait_for_others() && grows();
}

Grant Tape::allocate(const Request& request) {
  std::lock_guard lock(mutex_);
  if (!parts_ || request.bytes == 0 || request.bytes > options_.address_space) return {Verdict::kCapacity, 0, 0};
  const Granules size = granules_for(request.bytes + options_.red_zone);
  Parts& parts = *parts_;
  parts.timelines.forget_pending();
  // A block of that size that was freed lately and needs nothing, as one that the requester has freed itself: the
  // shortest way there is.
  const BestFit::Hole oldest = parts.space.oldest_recent(size);
  if (oldest.segment == nullptr || oldest.range.begin < parts.growth.device_begin()) return search(size, request);
  const bool own = request.line != kContextLine && oldest.history.is_of(request.line);
  if (!(own && parts.timelines.is_alive(request.line)) && !parts.reuse.needs_nothing(oldest, request))
    return search(size, request);
  if (own) stats_.same_stream_reuses.add(1);
  stats_.hits.add(1);
  parts.space.take_oldest_recent(oldest, size, block_for(size, request));
  count_served(bytes_of(size), request);
  stats_.holes.sink(parts.space.hole_count());
  return {Verdict::kServed, 0, address_of(oldest.range.begin)};
}

Grant Tape::search(Granules size, const Request& request) {
  BestFit& space = parts_->space;
  Found found;
  if (request.line != kContextLine && space.has_recent(size) && has_to_spare()) {
    found.hole = later_recent_for(size, request);
    found.part = found.hole.range;
    if (found.hole.segment != nullptr) {
      stats_.hits.add(1);
      return {Verdict::kServed, 0, serve(found, request)};
    }
  }
  // Nearly always the best fit needs nothing.
  if (const Range fit = space.best_fit(size); !fit.empty() && options_.max_split == 0 && is_located(fit, request)) {
    const BestFit::Hole hole = space.hole_from(fit.begin);
    if (parts_->reuse.needs_nothing(hole, request)) {
      stats_.hits.add(1);
      return {Verdict::kServed, 0, serve(hole, {fit.begin, fit.begin + size}, request)};
    }
  }
  if (from_best_fit(size, request, found) ||
      from_hole(size, request, may_ask(request) ? Effort::kFence : Effort::kLook, found)) {
    stats_.hits.add(1);
    return {Verdict::kServed, 0, serve(found, request)};
  }
  const bool served = by_patience(size, request, found);
  if (!parts_) return {Verdict::kCapacity, 0, 0};
  int error = parts_->growth.take_error();
  if (int refusal = fence_.take_error(); refusal != 0) {
    note_holes();
    return {Verdict::kDriverError, refusal, 0};
  }
  if (served) return {Verdict::kServed, 0, serve(found, request)};
  note_holes();
  // What the driver refuses to give is not there, whatever it says to be free.
  const bool fragmented = fits(size, error == 0 ? Room::kHeldAndAllowed : Room::kHeld);
  return {fragmented ? Verdict::kFragmentation : Verdict::kCapacity, error, 0};
}

void Tape::count_refusal(Verdict verdict) {
  std::lock_guard lock(mutex_);
  (verdict == Verdict::kFragmentation ? stats_.oom_fragmentation : stats_.oom_capacity).add(1);
}

Grant Tape::allocate_overflow(Request request) {
  std::lock_guard lock(mutex_);
  if (!parts_ || request.bytes == 0 || request.bytes > options_.overflow) return {Verdict::kCapacity, 0, 0};
  request.location = Location::kHost;
  const SlowPath spent(stats_);
  Granules size = granules_for(request.bytes + options_.red_zone);
  Found found;
  const bool served =
      from_hole(size, request, Effort::kFence, found) || by_growth(size, request, options_.host_wait_ms, found);
  int error = parts_->growth.take_error();
  if (int refusal = fence_.take_error(); refusal != 0) return {Verdict::kDriverError, refusal, 0};
  if (!served) return {Verdict::kCapacity, error, 0};
  return {Verdict::kServed, 0, serve(found, request)};
}

// Until a record that was made at its free is complete, with the lock released. False: nobody can tell.
bool Tape::await(Line line, std::uint64_t record, int& error) {
  for (;;) {
    parts_->timelines.forget_pending();
    const Progress progress = parts_->timelines.ask(line, record);
    if (progress == Progress::kUnknown) error = fence_.take_error();
    if (progress != Progress::kPending) return progress == Progress::kDone;
    nap();
    if (!parts_) return true;
  }
}

Freed Tape::free(std::uint64_t address, Line line, WorkOnIt work) {
  std::lock_guard lock(mutex_);
  Granules place = 0;
  if (!parts_ || address % kGranuleBytes != 0 || !place_of(address, place)) return {.result = FreeResult::kNotABlock};
  Parts& parts = *parts_;
  const BestFit::Owned owned = parts.space.block_from(place);
  if (owned.segment == nullptr) return {.result = FreeResult::kNotABlock};
  const std::uint64_t bytes = bytes_of(owned.range.size());
  const std::uint64_t requested = bytes - options_.red_zone - owned.block.slack;
  const std::uint16_t uncounted = count_freed(owned.range, requested, static_cast<std::uint16_t>(owned.block.tag));
  int error = 0;
  parts.timelines.forget_pending();
  const std::uint64_t record = work == WorkOnIt::kDone ? 0 : parts.timelines.mark_free(line, bytes, error);
  if (line == kContextLine) stats_.unfenced.add(bytes);
  if (parts.space.free(owned, line, record) == BestFit::Became::kRecent) [[likely]]
    stats_.holes.set(parts.space.hole_count());
  else
    after_free(owned.block.sharing);
  bool done = record == 0;
  if (work == WorkOnIt::kAwaited && !done && parts.timelines.is_made(line, record)) done = await(line, record, error);
  return {.code = error,
          .requested = requested,
          .record = line == kContextLine ? record : 0,
          .done = done,
          .tag = uncounted};
}

bool Tape::block_at(std::uint64_t address, BestFit::Owned& owned) const {
  Granules place = 0;
  if (!parts_ || !place_of(address, place)) return false;
  owned = parts_->space.block_at(place);
  return !owned.range.empty();
}

BlockInfo Tape::info_of(const BestFit::Owned& owned) const {
  BlockInfo info;
  info.address = address_of(owned.range.begin);
  info.bytes = bytes_of(owned.range.size());
  info.requested = info.bytes - options_.red_zone - owned.block.slack;
  info.buffer_id = owned.block.buffer_id;
  info.tag = static_cast<std::uint16_t>(owned.block.tag);
  info.stream_ordered = owned.block.stream_ordered;
  info.sharing = owned.block.sharing;
  return info;
}

bool Tape::find(std::uint64_t address, BlockInfo& info) const {
  std::lock_guard lock(mutex_);
  BestFit::Owned owned;
  if (!block_at(address, owned)) return false;
  if (owned.block.buffer_id == 0) {
    owned.block.buffer_id = ++last_buffer_id;
    parts_->space.mark(owned, owned.block);
  }
  info = info_of(owned);
  return true;
}

void Tape::visit_blocks(const std::function<void(const BlockInfo&)>& visit) const {
  std::lock_guard lock(mutex_);
  if (parts_) parts_->space.visit_blocks([&](const BestFit::Owned& owned) { visit(info_of(owned)); });
}

bool Tape::share(std::uint64_t address, Sharing sharing, std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  Granules place = 0;
  if (!parts_ || !place_of(address, place)) return false;
  const std::uint64_t last = std::min(address % kGranuleBytes + bytes, options_.address_space);
  return parts_->space.share({place, place + granules_for(last)}, sharing);
}

bool Tape::release(std::uint64_t address) {
  std::lock_guard lock(mutex_);
  Granules place = 0;
  return parts_ && place_of(address, place) && parts_->space.release(place);
}

bool Tape::visit_handles(std::uint64_t address, const HandleVisit& visit) const {
  std::lock_guard lock(mutex_);
  BestFit::Owned owned;
  if (!block_at(address, owned)) return false;
  parts_->handles.visit_below(owned.range,
                              [&](Granules begin, const Handle& handle) { return visit(handle, address_of(begin)); });
  return true;
}

Line Tape::line_of(StreamRef stream, bool per_thread) {
  std::lock_guard lock(mutex_);
  return parts_ ? parts_->timelines.line_of(stream, per_thread) : kContextLine;
}

void Tape::stream_ending(StreamRef stream, StreamEnd end) {
  std::lock_guard lock(mutex_);
  if (parts_) parts_->timelines.ending(stream, end);
}

void Tape::captures_ended() {
  std::lock_guard lock(mutex_);
  if (parts_) parts_->timelines.record_put_off();
}

std::uint64_t Tape::trim(std::uint64_t keep) {
  std::lock_guard lock(mutex_);
  if (!parts_) return 0;
  const SlowPath spent(stats_);
  parts_->timelines.forget_pending();
  parts_->timelines.grant_patience(options_.host_wait_ms);
  options_.size = std::min(options_.size, keep);  // a prefill on its way does not take it again
  parts_->space.settle_recent();
  std::uint64_t given_back = parts_->growth.trim(keep);
  note_holes();
  return given_back;
}

void Tape::retire() {
  std::lock_guard lock(mutex_);
  if (!parts_) return;
  bool ordered = false;
  parts_->space.visit_blocks([&](const BestFit::Owned& owned) { ordered |= owned.block.stream_ordered; });
  parts_->growth.release_all();
  if (range_ != 0) {
    // To the program stream-ordered blocks outlive the tape: nobody else may get their addresses.
    if (!ordered) {
      addresses_.remove(0);
      backing_.unreserve(range_, options_.address_space);
    }
  }
  parts_.reset();
  for (Gauge* gauge :
       {&stats_.live, &stats_.requested, &stats_.needed, &stats_.overflow_live, &stats_.blocks, &stats_.holes})
    gauge->set(0);
}

HoleSummary Tape::holes() const {
  std::lock_guard lock(mutex_);
  if (!parts_) return {};
  parts_->space.settle_recent();
  if (parts_->handles.host_bytes() == 0) {
    return {parts_->space.hole_count(), bytes_of_64(parts_->space.hole_granules()),
            bytes_of(parts_->space.largest().size())};
  }
  HoleSummary sum;
  const Request on_card;
  for (Range hole = located(parts_->space.best_fit(1), on_card); !hole.empty();
       hole = located(parts_->space.following(hole), on_card)) {
    ++sum.holes;
    sum.bytes += bytes_of(hole.size());
    sum.largest = bytes_of(hole.size());
  }
  return sum;
}

std::uint64_t Tape::free_bytes() const {
  std::uint64_t held = stats_.reserved.current();
  std::uint64_t live = stats_.live.current() - std::min(stats_.live.current(), stats_.overflow_live.current());
  return held > live ? held - live : 0;
}

const char* Tape::validate() const {
  std::lock_guard lock(mutex_);
  if (!parts_) return nullptr;
  if (const char* broken = parts_->space.validate()) return broken;
  if (const char* broken = parts_->handles.validate()) return broken;
  if (const char* broken = parts_->timelines.validate()) return broken;
  std::uint64_t held = parts_->handles.device_bytes() + parts_->handles.host_bytes();
  std::uint64_t free = bytes_of_64(parts_->space.hole_granules());
  if (stats_.reserved.current() != parts_->handles.device_bytes() ||
      stats_.overflow.current() != parts_->handles.host_bytes())
    return "tape: reserved or overflow is not the sum of the handles";
  if (stats_.live.current() + free + parts_->space.retained_bytes() != held)
    return "tape: blocks and holes do not fill the handles";
  return nullptr;
}

}  // namespace gpupool
