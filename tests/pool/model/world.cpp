// See world.h.
#include "tests/pool/model/world.h"

#include <algorithm>

namespace gpupool::model {
namespace {

using Point = MemoryFence::Point;

void require(bool holds, const char* promise) {
  if (!holds) throw Violation(promise);
}

void join(Point& into, const Point& other) {
  if (into.size() < other.size()) into.resize(other.size(), 0);
  for (std::size_t i = 0; i < other.size(); ++i) into[i] = std::max(into[i], other[i]);
}

std::uint64_t at(const Point& point, std::size_t i) { return i < point.size() ? point[i] : 0; }

// A stream that is not there: what it is ordered behind is what the whole context waits for.
constexpr StreamRef kWitness = StreamRef{1} << 40;

constexpr std::uint16_t kCounted = 3;  // the tag that has an account
constexpr std::uint16_t kUncounted = 4;

}  // namespace

class World::SabotagedFence final : public Fence {
 public:
  SabotagedFence(const MemoryFence::Options& options, Sabotage sabotage) : honest(options), sabotage_(sabotage) {}
  EventId make_event() override { return honest.make_event(); }
  RecordResult record(StreamRef line, EventId event) override {
    if (sabotage_ == Sabotage::kRecordLost) return RecordResult::kComplete;
    return honest.record(line, event);
  }
  bool wait(StreamRef line, EventId event) override {
    if (sabotage_ == Sabotage::kWaitSkipped) return true;
    return honest.wait(sabotage_ == Sabotage::kContextForStream ? kWholeContext : line, event);
  }
  Progress query(EventId event) override {
    return sabotage_ == Sabotage::kDoneTooEarly ? Progress::kDone : honest.query(event);
  }
  bool wait_on_host(EventId event, unsigned milliseconds) override { return honest.wait_on_host(event, milliseconds); }
  int take_error() override { return honest.take_error(); }

  MemoryFence honest;

 private:
  Sabotage sabotage_;
};

// Sees memory leave its place: no block and no work in flight may still be there.
class World::WatchedBacking final : public Backing {
 public:
  WatchedBacking(const MemoryBacking::Options& options, World& world) : books(options), world_(world) {}
  Placement placement() const override { return books.placement(); }
  std::uint64_t granularity() const override { return books.granularity(); }
  DriverAnswer reserve(std::uint64_t bytes, std::uint64_t& address) override { return books.reserve(bytes, address); }
  void unreserve(std::uint64_t address, std::uint64_t bytes) override { books.unreserve(address, bytes); }
  DriverAnswer create(std::uint64_t bytes, Location location, Handle& handle) override {
    return books.create(bytes, location, handle);
  }
  void destroy(const Handle& handle) override {
    if (placement() == Placement::kGiven) world_.memory_leaves(handle.address, handle.bytes);
    books.destroy(handle);
  }
  DriverAnswer map(const Handle& handle, std::uint64_t address) override { return books.map(handle, address); }
  DriverAnswer unmap(const Handle& handle, std::uint64_t address) override {
    const DriverAnswer answer = books.unmap(handle, address);
    if (answer.ok()) world_.memory_leaves(address, handle.bytes);
    return answer;
  }
  CardMemory card_memory() override { return books.card_memory(); }

  MemoryBacking books;

 private:
  World& world_;
};

World::World(const Scene& scene, Sabotage sabotage)
    : scene_(scene),
      backing_(std::make_unique<WatchedBacking>(scene.card, *this)),
      fence_(std::make_unique<SabotagedFence>(scene.fence, sabotage)),
      tape_(scene.options, *backing_, *fence_, {.accounts = &accounts_}) {
  accounts_.open(kCounted, account_);
  for (StreamRef s = 1; s <= scene.streams; ++s) streams_.push_back(s * 16);
}

World::~World() {
  blocks_.clear();  // the tape ends with whatever is left
  freed_.clear();
  retained_.clear();
}

void World::memory_leaves(std::uint64_t begin, std::uint64_t bytes) {
  const std::uint64_t end = begin + bytes;
  const auto overlaps = [&](const Freed& range) { return range.begin < end && begin < range.end; };
  for (const auto& [first, block] : blocks_) {
    if (first < end && begin < block.end) left_early_ = "a block keeps its memory";
  }
  for (const Freed& freed : freed_) {
    if (overlaps(freed) && !fence_->honest.is_complete(freed.behind))
      left_early_ = "memory is moved or given back only when its work is complete";
  }
  std::vector<Freed> left;
  for (const Freed& kept : retained_) {
    if (!overlaps(kept)) {
      left.push_back(kept);
      continue;
    }
    if (kept.sharing == Sharing::kFixed) left_early_ = "memory that others reach without a reference stays";
    if (!fence_->honest.is_complete(kept.behind)) left_early_ = "shared memory leaves only when its work is complete";
    // What is left of it in front can still be released; what is left behind is found by nobody.
    if (kept.begin < begin) left.push_back({kept.begin, begin, kept.behind, kept.may_delay, kept.sharing});
    if (end < kept.end) left.push_back({end, kept.end, kept.behind, kept.may_delay, Sharing::kReferenced});
  }
  retained_ = std::move(left);
}

bool World::step(const Operation& operation) {
  MemoryFence& fence = fence_->honest;
  const StreamRef on = stream(operation.who);
  bool done = true;
  switch (operation.verb) {
    case Verb::allocate:
      done = allocate(Kind::kOrdered, operation);
      break;
    case Verb::allocate_plain:
      done = allocate(Kind::kPlain, operation);
      break;
    case Verb::allocate_no_wait:
      done = allocate(Kind::kNoWait, operation);
      break;
    case Verb::free:
      done = free(Kind::kOrdered, operation);
      break;
    case Verb::free_plain:
      done = free(Kind::kPlain, operation);
      break;
    case Verb::submit:
      fence.submit(on);
      break;
    case Verb::complete:
      fence.complete(fence.point_of(on));
      break;
    case Verb::complete_all:
      fence.complete(fence.point_of(kWholeContext));
      break;
    case Verb::begin_capture:
      done = !capturing_;
      if (done) {
        const auto held = tape_.hold();
        fence.begin_capture(on);
        capturing_ = true;
      }
      break;
    case Verb::end_captures:
      done = capturing_;
      if (done) {
        fence.end_captures();
        capturing_ = false;
        tape_.captures_ended();
      }
      break;
    case Verb::end_stream:
      done = end_stream(operation.who);
      break;
    case Verb::new_stream:
      streams_.push_back((streams_.size() + 1) * 4096);
      break;
    case Verb::trim:
      tape_.trim(operation.size);
      break;
    case Verb::prefill:
      tape_.prefill(operation.size);
      break;
    case Verb::share:
      done = share(operation);
      break;
    case Verb::release:
      done = release(operation);
      break;
    case Verb::neighbour:
      done = neighbour(operation.size);
      break;
    case Verb::refuse_memory: {
      using Call = MemoryBacking::Operation;
      constexpr Call kCalls[] = {Call::kCreate, Call::kMap, Call::kUnmap};
      done = refused_ = scene_.refusals;
      if (done) backing_->books.refuse(kCalls[operation.who % std::size(kCalls)], 1 + operation.size % 4, 2);
      break;
    }
    case Verb::refuse_fence: {
      using Call = MemoryFence::Operation;
      constexpr Call kCalls[] = {Call::kMakeEvent, Call::kRecord, Call::kWait, Call::kQuery, Call::kHostWait};
      done = refused_ = scene_.refusals;
      if (done) fence.refuse(kCalls[operation.who % std::size(kCalls)], 1 + operation.size % 4, 999);
      break;
    }
  }
  check_structures();
  return done;
}

// Whoever has plain memory may touch it from any stream at once; the stream that asked for ordered memory touches that.
void World::touch_by_all() {
  for (StreamRef each : streams_) fence_->honest.submit(each);
}

bool World::allocate(Kind kind, const Operation& operation) {
  MemoryFence& fence = fence_->honest;
  const StreamRef on = kind == Kind::kPlain ? kWitness : stream(operation.who);
  const Thread& by = thread(operation.who);
  Request request{.bytes = 1 + operation.size % (std::uint64_t{1} << 26)};
  if (kind != Kind::kPlain) request.line = tape_.line_of(on, false);
  if (scene_.own_frees) request.own_free = by.own_free;
  request.may_wait = kind != Kind::kNoWait;
  if (kind != Kind::kPlain) request.tag = kind == Kind::kOrdered ? kCounted : kUncounted;
  std::vector<Point> before;
  for (StreamRef each : streams_) before.push_back(fence.point_of(each));
  const Point before_witness = fence.point_of(kWitness);
  const Grant grant = tape_.allocate(request);
  require(grant.ok() || grant.verdict != Verdict::kDriverError || refused_,
          "a driver error needs a driver that refuses");
  // A stream may be made to wait for what its bytes' history says, and for what its thread has natively waited for.
  Point allowed;
  if (scene_.own_frees) allowed = by.waited;
  const std::uint64_t end = grant.address + (request.bytes + 511) / 512 * 512;
  for (const Freed& freed : freed_) {
    const bool covered = grant.ok() && freed.begin < end && grant.address < freed.end;
    // A wait that the driver refuses halfway leaves those before it, and the bytes go elsewhere.
    if (covered || !grant.ok() || refused_) join(allowed, freed.may_delay);
  }
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    const Point after = fence.point_of(streams_[i]);
    for (std::size_t s = 0; s < after.size(); ++s) {
      if (after[s] <= at(before[i], s)) continue;
      require(kind != Kind::kPlain, "a plain request makes nobody wait on the device");
      require(streams_[i] == on, "only the stream that asks is made to wait");
      require(kind != Kind::kNoWait, "no wait is inserted where it is forbidden");
      require(after[s] <= at(allowed, s), "nobody waits for work submitted after the free");
    }
  }
  require(fence.point_of(kWitness) == before_witness, "no request makes the whole context wait");
  if (grant.ok()) granted(kind, on, request, grant.address);
  return grant.ok();
}

void World::granted(Kind kind, StreamRef stream, const Request& request, std::uint64_t begin) {
  MemoryFence& fence = fence_->honest;
  const std::uint64_t end = begin + (request.bytes + 511) / 512 * 512;
  require(begin % 512 == 0, "an address is a multiple of 512");
  require(backing_->books.usable(begin, end - begin), "a block's bytes are mapped");
  const auto next = blocks_.lower_bound(begin);
  require(next == blocks_.end() || next->first >= end, "blocks do not overlap");
  require(next == blocks_.begin() || std::prev(next)->second.end <= begin, "blocks do not overlap");
  for (const Freed& kept : retained_) require(kept.end <= begin || end <= kept.begin, "shared memory is not reused");
  std::vector<Freed> left;
  for (Freed& freed : freed_) {
    if (freed.end <= begin || end <= freed.begin) {
      left.push_back(std::move(freed));
      continue;
    }
    if (kind == Kind::kPlain)
      require(fence.is_complete(freed.behind), "plain memory has no earlier work left");
    else
      require(fence.safe_after(stream, freed.behind), "the owner is ordered behind the bytes' earlier work");
    if (freed.begin < begin) left.push_back({freed.begin, begin, freed.behind, freed.may_delay, Sharing::kNone});
    if (end < freed.end) left.push_back({end, freed.end, freed.behind, freed.may_delay, Sharing::kNone});
  }
  freed_ = std::move(left);
  blocks_[begin] = {end, request.bytes, Sharing::kNone, request.tag};
  if (request.tag == kCounted) counted_ += request.bytes;
  live_ += end - begin;
  requested_ += request.bytes;
  if (kind == Kind::kPlain)
    touch_by_all();
  else
    fence.submit(stream);
}

bool World::free(Kind kind, const Operation& operation) {
  if (blocks_.empty()) return false;
  const auto block = std::next(blocks_.begin(), static_cast<long>(operation.size % blocks_.size()));
  const std::uint64_t begin = block->first;
  const bool plain = kind == Kind::kPlain;
  const Point behind = fence_->honest.point_of(plain ? kWholeContext : stream(operation.who));
  const Line line = plain ? kContextLine : tape_.line_of(stream(operation.who), false);
  require(tape_.free(begin + 256, line).result == FreeResult::kNotABlock, "no block begins inside another");
  const Sharing sharing = block->second.sharing;
  (sharing == Sharing::kNone ? freed_ : retained_)
      .push_back({begin, block->second.end, behind, plain ? Point{} : behind, sharing});
  live_ -= block->second.end - begin;
  const Block gone = block->second;
  requested_ -= gone.requested;
  if (gone.tag == kCounted) counted_ -= gone.requested;
  blocks_.erase(block);
  const gpupool::Freed answer = tape_.free(begin, line);
  require(answer.result == FreeResult::kFreed, "a live block can be freed");
  require(answer.requested == gone.requested, "a free says what was asked for");
  require(answer.tag == (gone.tag == kCounted ? 0 : gone.tag), "a free names the tag that is not counted");
  require(tape_.free(begin, line).result == FreeResult::kNotABlock, "a block is freed once");
  if (plain) thread(operation.who) = {answer.record, behind};
  return true;
}

bool World::share(const Operation& operation) {
  if (blocks_.empty()) return false;
  const auto block = std::next(blocks_.begin(), static_cast<long>(operation.size % blocks_.size()));
  constexpr Sharing kWays[] = {Sharing::kAnnounced, Sharing::kReferenced, Sharing::kAnnounced, Sharing::kFixed};
  const Sharing way = kWays[operation.who % std::size(kWays)];
  require(tape_.share(block->first, way), "a live block can be shared");
  block->second.sharing = std::max(block->second.sharing, way);
  return true;
}

bool World::release(const Operation& operation) {
  if (retained_.empty()) return false;
  const auto kept = retained_.begin() + static_cast<long>(operation.size % retained_.size());
  const bool goes = kept->sharing == Sharing::kAnnounced;
  require(tape_.release(kept->begin) == goes, "what was announced is released, and nothing else");
  if (!goes) return true;
  freed_.push_back(*kept);
  retained_.erase(kept);
  require(!tape_.release(freed_.back().begin), "once");
  return true;
}

bool World::end_stream(std::uint32_t who) {
  if (capturing_) return false;
  StreamRef& handle = streams_[who % streams_.size()];
  tape_.stream_ending(handle);
  handle += 1;  // a new stream; the old one's queued work still runs
  return true;
}

bool World::neighbour(std::uint64_t bytes) {
  if (elsewhere_ != 0) {
    backing_->books.give_elsewhere(elsewhere_);
    elsewhere_ = 0;
    return true;
  }
  const std::uint64_t unit = backing_->books.granularity();
  elsewhere_ = std::min(bytes, backing_->books.card_memory().free) / unit * unit;
  backing_->books.take_elsewhere(elsewhere_);
  return elsewhere_ != 0;
}

void World::check_structures() const {
  if (const char* broken = tape_.validate()) throw Violation(broken);
  if (const char* broken = backing_->books.broken_rule()) throw Violation(broken);
  if (left_early_) throw Violation(left_early_);
  const Stats& stats = tape_.stats();
  require(stats.live.current() == live_, "live is the bytes of all blocks");
  require(stats.requested.current() == requested_, "requested is what was asked for");
  require(stats.blocks.current() == blocks_.size(), "blocks are counted");
  require(account_.bytes() == counted_, "an account holds what its tag's blocks were asked for with");
  require(stats.requests.get() - stats.frees.get() == blocks_.size(), "requests less frees are the blocks");
  require(stats.reserved.current() <= scene_.options.max, "no more is held than pool.max");
}

}  // namespace gpupool::model
