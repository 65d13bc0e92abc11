// The whole tape against a naive reference, by random operations on several streams with captures, destroyed streams
// and a card that fills up. Checked after every step: no two blocks overlap; a block's bytes are mapped; whoever gets
// bytes is ordered behind all work that could touch them; nobody is made to wait for work submitted after the free it
// stands behind, nor for the plain free of another thread; every structure is valid. A failing run prints its seed.
#include <algorithm>
#include <map>
#include <random>

#include "pool/memory_backing.h"
#include "pool/memory_fence.h"
#include "pool/tape.h"
#include "tests/catch.h"

using namespace gpupool;

namespace {

using Point = MemoryFence::Point;

void join(Point& into, const Point& other) {
  if (into.size() < other.size()) into.resize(other.size(), 0);
  for (std::size_t i = 0; i < other.size(); ++i) into[i] = std::max(into[i], other[i]);
}

struct FreedBytes {
  std::uint64_t begin;
  std::uint64_t end;
  Point behind;     // all work that may still touch the bytes
  Point may_delay;  // what its next owner, a stream, may be made to wait for
};

constexpr unsigned kThreads = 3;
struct Thread {
  std::uint64_t own_free = 0;
  Point waited;  // what its last plain free stands behind
};

class Model {
 public:
  Model(unsigned seed, unsigned streams, const TapeOptions& options, const MemoryBacking::Options& card)
      : random_(seed), backing_(card), fence_({.looks_until_done = 9}), tape_(options, backing_, fence_) {
    for (StreamRef s = 1; s <= streams; ++s) streams_.push_back(s * 16);
  }

  void step() {
    switch (pick(20)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5:
        allocate();
        break;
      case 6:
      case 7:
      case 8:
      case 9:
      case 10:
      case 11:
        free();
        break;
      case 12:
      case 13:
      case 14:
        fence_.submit(stream());
        break;
      case 15:
        fence_.complete(fence_.point_of(stream()));
        break;
      case 16:
        if (pick(4) == 0) fence_.complete(fence_.point_of(kWholeContext));
        break;
      case 17:
        capture();
        break;
      case 18:
        if (pick(10) == 0)
          destroy_stream();
        else if (pick(40) == 0)
          streams_.push_back(streams_.size() * 4096 + 4096);
        break;
      case 19:
        if (pick(20) == 0) tape_.trim(0);
        break;
    }
    const char* broken = tape_.validate();
    INFO((broken ? broken : ""));
    REQUIRE(broken == nullptr);
    INFO((backing_.broken_rule() ? backing_.broken_rule() : ""));
    REQUIRE(backing_.broken_rule() == nullptr);
  }

  std::uint64_t served = 0;
  std::uint64_t refused = 0;
  const Stats& stats() const { return tape_.stats(); }

 private:
  unsigned pick(unsigned n) { return static_cast<unsigned>(random_() % n); }
  StreamRef stream() { return streams_[pick(static_cast<unsigned>(streams_.size()))]; }

  std::uint64_t random_size() {
    switch (pick(6)) {
      case 0:
        return 1 + pick(600);
      case 1:
        return 1 + pick(40) * 1024;
      case 2:
        return std::uint64_t{1 + pick(8)} << 20;
      case 3:
        return std::uint64_t{1 + pick(24)} << 20;
      default:
        return 512 * (1 + pick(8));
    }
  }

  void allocate() {
    bool plain = pick(3) == 0;
    StreamRef line = plain ? kWholeContext : stream();
    Request request;
    request.bytes = random_size();
    request.line = plain ? kContextLine : tape_.line_of(line, false);
    request.may_wait = pick(8) != 0;
    Thread& thread = threads_[pick(kThreads)];
    request.own_free = thread.own_free;
    // Another stream, to see what a plain request's wait reaches.
    StreamRef witness = plain ? StreamRef{1} << 40 : line;
    Point before = fence_.point_of(witness);
    Grant grant = tape_.allocate(request);
    if (!grant.ok()) {
      ++refused;
      return;
    }
    ++served;
    std::uint64_t begin = grant.address;
    std::uint64_t end = begin + (request.bytes + 511) / 512 * 512;
    REQUIRE(begin % 512 == 0);
    REQUIRE(backing_.usable(begin, end - begin));
    auto next = blocks_.lower_bound(begin);
    REQUIRE((next == blocks_.end() || next->first >= end));
    REQUIRE((next == blocks_.begin() || std::prev(next)->second <= begin));

    Point allowed = before;
    if (!plain) join(allowed, thread.waited);
    for (auto it = freed_.begin(); it != freed_.end();) {
      if (it->end <= begin || it->begin >= end) {
        ++it;
        continue;
      }
      if (plain) {
        REQUIRE(fence_.is_complete(it->behind));
      } else {
        REQUIRE(fence_.safe_after(line, it->behind));
      }
      if (!plain) join(allowed, it->may_delay);
      FreedBytes left{it->begin, begin, it->behind, it->may_delay};
      FreedBytes right{end, it->end, it->behind, it->may_delay};
      it = freed_.erase(it);
      if (left.begin < left.end) it = std::next(freed_.insert(it, left));
      if (right.begin < right.end) it = std::next(freed_.insert(it, right));
    }
    Point after = fence_.point_of(witness);
    for (std::size_t i = 0; i < after.size(); ++i) {
      std::uint64_t was = i < before.size() ? before[i] : 0;
      if (after[i] > was) REQUIRE(after[i] <= (i < allowed.size() ? allowed[i] : 0));
    }
    if (!request.may_wait && !plain) REQUIRE(after == before);
    blocks_[begin] = end;
  }

  void free() {
    if (blocks_.empty()) return;
    auto it = std::next(blocks_.begin(), pick(static_cast<unsigned>(blocks_.size())));
    bool plain = pick(3) == 0;
    StreamRef line = plain ? kWholeContext : stream();
    Point behind = fence_.point_of(line);
    FreedBytes freed{it->first, it->second, behind, plain ? Point{} : behind};
    REQUIRE(tape_.free(it->first + 256, kContextLine).result == FreeResult::kNotABlock);
    const Freed answer = tape_.free(it->first, plain ? kContextLine : tape_.line_of(line, false));
    REQUIRE(answer.result == FreeResult::kFreed);
    if (plain) {
      Thread& thread = threads_[pick(kThreads)];
      thread.own_free = answer.record;
      thread.waited = behind;  // natively
    }
    REQUIRE(tape_.free(it->first, kContextLine).result == FreeResult::kNotABlock);
    freed_.push_back(freed);
    blocks_.erase(it);
  }

  void capture() {
    if (!capturing_ && pick(6) == 0) {
      auto hold = tape_.hold();
      fence_.begin_capture(stream());
      capturing_ = true;
    } else if (capturing_ && pick(3) == 0) {
      fence_.end_captures();
      capturing_ = false;
      tape_.captures_ended();
    }
  }

  void destroy_stream() {
    if (capturing_) return;
    unsigned i = pick(static_cast<unsigned>(streams_.size()));
    tape_.stream_ending(streams_[i]);
    streams_[i] += 1;  // a new stream; the old one's queued work still runs
  }

  std::mt19937_64 random_;
  MemoryBacking backing_;
  MemoryFence fence_;
  Tape tape_;
  std::vector<StreamRef> streams_;
  std::map<std::uint64_t, std::uint64_t> blocks_;
  std::vector<FreedBytes> freed_;
  Thread threads_[kThreads];
  bool capturing_ = false;
};

void run(const char* what, TapeOptions options, const MemoryBacking::Options& card) {
  options.host_wait_ms = 1;  // what is freed during a capture is not known complete, however long they wait
  std::uint64_t served = 0;
  for (unsigned seed = 1; seed <= 32; ++seed) {
    Model model(seed, seed % 4 == 0 ? 1 : 4, options, card);  // with one stream alone, records are put off
    for (unsigned i = 0; i < 1500; ++i) {
      INFO(what << ", seed " << seed << ", step " << i);
      model.step();
    }
    served += model.served;
  }
  REQUIRE(served > 1000);
}

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

}  // namespace

TEST_CASE("model: growing from nothing on a small card") {
  TapeOptions options;
  options.exact_growth = true;
  options.address_space = 4096 * kMiB;
  run("exact growth", options, {.card_bytes = 256 * kMiB});
}

TEST_CASE("model: fixed steps, a cap and headroom") {
  TapeOptions options;
  options.address_space = 4096 * kMiB;
  options.growth_bytes = 16 * kMiB;
  options.max = 200 * kMiB;
  options.headroom = 100 * kMiB;
  options.handle = 8 * kMiB;
  run("steps", options, {.card_bytes = 256 * kMiB});
}

TEST_CASE("model: quiescent reuse never waits") {
  TapeOptions options;
  options.reuse = ReusePolicy::kQuiescent;
  options.address_space = 4096 * kMiB;
  run("quiescent", options, {.card_bytes = 128 * kMiB});
}

TEST_CASE("model: memory that brings its own addresses") {
  TapeOptions options;
  options.address_space = 65536 * kMiB;
  run("arena", options, {.placement = Placement::kGiven, .card_bytes = 256 * kMiB});
}
