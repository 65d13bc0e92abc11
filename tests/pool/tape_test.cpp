// The tape's behaviour, scene by scene: what users of allocators reported, and the ladder from a hole to a refusal.
#include "pool/tape.h"

#include <algorithm>
#include <thread>

#include "pool/memory_backing.h"
#include "pool/memory_fence.h"
#include "tests/catch.h"

using namespace gpupool;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

struct Scene {
  explicit Scene(TapeOptions options = {}, MemoryBacking::Options card = {.card_bytes = 8 * kGiB},
                 MemoryFence::Options gpu = {})
      : backing(card), fence(gpu), tape(with_defaults(options), backing, fence) {}
  static TapeOptions with_defaults(TapeOptions options) {
    options.address_space = 64 * kGiB;
    return options;
  }
  std::uint64_t plain(std::uint64_t bytes) { return tape.allocate({.bytes = bytes}).address; }
  std::uint64_t on(StreamRef stream, std::uint64_t bytes) {
    return tape.allocate({.bytes = bytes, .line = tape.line_of(stream, false)}).address;
  }
  void free_on(StreamRef stream, std::uint64_t address) {
    REQUIRE(tape.free(address, tape.line_of(stream, false)).result == FreeResult::kFreed);
  }
  void free_plain(std::uint64_t address) { REQUIRE(tape.free(address, kContextLine).result == FreeResult::kFreed); }

  MemoryBacking backing;
  MemoryFence fence;
  Tape tape;
};

constexpr StreamRef kS = 0x1000;
constexpr StreamRef kT = 0x2000;

}  // namespace

TEST_CASE("[case-2] converting weights strands what best fit must strand, and says so") {
  TapeOptions options;
  options.size = options.max = 10000 * 2 * kMiB;
  Scene scene(options, {.card_bytes = 64 * kGiB});
  REQUIRE(scene.tape.prefill(options.size) == 0);
  const std::uint64_t unit = 2 * kMiB;
  unsigned rounds = 0;
  Grant last;
  while (true) {
    std::uint64_t x = scene.plain(530 * unit);
    last = x == 0 ? Grant{} : scene.tape.allocate({.bytes = 530 * unit});
    if (x != 0) scene.free_plain(x);
    if (x == 0 || !last.ok()) break;
    if (scene.plain(270 * unit) == 0) break;
    ++rounds;
  }
  // Plain best fit holds 9 rounds. Moving free handles together reaches the ideal: each round keeps 800 of 10,000 and
  // needs 1,060 at once.
  REQUIRE(rounds == 12);
  REQUIRE(scene.tape.validate() == nullptr);
  REQUIRE(scene.tape.stats().oom_capacity.get() + scene.tape.stats().oom_fragmentation.get() == 0);
  scene.tape.count_refusal(last.verdict);
  REQUIRE(scene.tape.stats().oom_capacity.get() + scene.tape.stats().oom_fragmentation.get() == 1);
}

TEST_CASE("[case-3] [case-45] what is wholly free is given back or moved before a refusal") {
  for (Placement placement : {Placement::kChosen, Placement::kGiven}) {
    TapeOptions options;
    options.max = kGiB;
    options.growth_bytes = 0;
    Scene scene(options, {.placement = placement, .card_bytes = 8 * kGiB});
    std::uint64_t p = scene.plain(512 * kMiB);
    scene.free_plain(p);
    REQUIRE(scene.plain(768 * kMiB) != 0);
    REQUIRE(scene.tape.stats().reserved.current() <= kGiB);
    REQUIRE(scene.tape.validate() == nullptr);
  }
}

TEST_CASE("[case-4] the whole pool can go to one request, and two streams do not split it for ever") {
  TapeOptions options;
  options.size = 256 * kMiB;
  options.max = 1024 * kMiB;
  Scene scene(options);
  scene.tape.prefill(options.size);
  std::uint64_t whole = scene.plain(1024 * kMiB);
  REQUIRE(whole != 0);
  scene.free_plain(whole);
  std::uint64_t a = scene.on(kS, 512 * kMiB);
  std::uint64_t b = scene.on(kT, 512 * kMiB);
  scene.free_on(kS, a);
  scene.free_on(kT, b);
  scene.fence.complete(scene.fence.point_of(kWholeContext));
  REQUIRE(scene.plain(1024 * kMiB) != 0);
}

TEST_CASE("[case-44] [case-45] sizes at the edges") {
  TapeOptions options;
  options.size = options.max = 64 * kMiB;
  Scene scene(options, {.card_bytes = kGiB});
  scene.tape.prefill(options.size);
  for (std::uint64_t bytes : {~std::uint64_t{0}, ~std::uint64_t{0} - 510, ~std::uint64_t{0} - 511,
                              std::uint64_t{1} << 63, 64 * kMiB + 1, std::uint64_t{0}}) {
    REQUIRE(!scene.tape.allocate({.bytes = bytes}).ok());
  }
  REQUIRE(scene.tape.validate() == nullptr);
  REQUIRE(scene.tape.stats().live.current() == 0);
  std::uint64_t p = scene.plain(64 * kMiB - 300);
  REQUIRE(p != 0);
  REQUIRE(scene.plain(1) == 0);
  BlockInfo info;
  REQUIRE(scene.tape.find(p + 64 * kMiB - 301, info));
  REQUIRE(info.requested == 64 * kMiB - 300);
  scene.free_plain(p);
  std::uint64_t head = scene.plain(64 * kMiB - 512);
  REQUIRE(scene.plain(300) == head + 64 * kMiB - 512);
}

TEST_CASE("[case-43] a bad free changes nothing") {
  Scene scene;
  std::uint64_t p = scene.plain(1000);
  std::uint64_t q = scene.plain(1000);
  REQUIRE(scene.tape.free(p + 512, kContextLine).result == FreeResult::kNotABlock);
  REQUIRE(scene.tape.free(p + 1, kContextLine).result == FreeResult::kNotABlock);
  scene.free_plain(p);
  REQUIRE(scene.tape.free(p, kContextLine).result == FreeResult::kNotABlock);
  REQUIRE(scene.tape.free(q + 100 * kMiB, kContextLine).result == FreeResult::kNotABlock);
  std::uint64_t r = scene.plain(1000);
  std::uint64_t s = scene.plain(1000);
  REQUIRE(r != s);
  REQUIRE(r != q);
  REQUIRE(s != q);
  REQUIRE(scene.tape.validate() == nullptr);
}

TEST_CASE("a stream reuses its own memory without any driver call") {
  Scene scene;
  std::uint64_t p = scene.on(kS, kMiB);
  for (int i = 0; i < 100; ++i) {
    scene.fence.submit(kS);
    scene.free_on(kS, p);
    REQUIRE(scene.on(kS, kMiB) == p);
  }
  for (auto operation :
       {MemoryFence::Operation::kRecord, MemoryFence::Operation::kWait, MemoryFence::Operation::kQuery}) {
    REQUIRE(scene.fence.calls(operation) == 0);
  }
  REQUIRE(scene.tape.stats().same_stream_reuses.get() == 100);
}

TEST_CASE(
    "a large block that an only stream freed can be waited for by one that appears later, as it was at the free") {
  TapeOptions options;
  options.max = 64 * kMiB;
  options.growth_bytes = 0;
  options.host_wait_ms = 0;
  Scene scene(options);
  std::uint64_t small = scene.on(kS, 512);
  std::uint64_t large = scene.on(kS, 48 * kMiB);
  scene.free_on(kS, small);
  auto used = scene.fence.submit(kS);
  scene.free_on(kS, large);
  auto later = scene.fence.submit(kS);
  REQUIRE(scene.on(kT, 48 * kMiB) != 0);
  REQUIRE(scene.fence.ordered_behind(kT, used));
  REQUIRE(!scene.fence.ordered_behind(kT, later));
  REQUIRE(scene.fence.calls(MemoryFence::Operation::kRecord) == 1);
  REQUIRE(scene.tape.validate() == nullptr);
}

TEST_CASE("a plain free is recorded at once, and used again once it is known complete, with no wait on the device") {
  Scene scene;
  std::uint64_t p[8];
  for (auto& block : p) block = scene.plain(kMiB);
  auto used = scene.fence.submit(kS);
  for (auto& block : p) scene.free_plain(block);
  REQUIRE(scene.fence.calls(MemoryFence::Operation::kRecord) == 8);
  std::uint64_t elsewhere = scene.plain(8 * kMiB);
  REQUIRE((elsewhere >= p[7] + kMiB || elsewhere + 8 * kMiB <= p[0]));
  scene.fence.complete(used);
  REQUIRE(scene.plain(8 * kMiB) == p[0]);
  REQUIRE(scene.fence.calls(MemoryFence::Operation::kWait) == 0);
  REQUIRE(scene.tape.stats().fences.get() == 0);
}

TEST_CASE("a stream waits for a plain free of its own thread, and not for another thread's") {
  Scene scene({.max = 4 * kMiB, .growth_bytes = 0});
  std::uint64_t p = scene.plain(kMiB);
  scene.on(kT, 512);
  scene.plain(2 * kMiB - 512);  // leaves room for one more
  auto used = scene.fence.submit(kS);
  Freed freed = scene.tape.free(p, kContextLine);
  REQUIRE(freed.record != 0);
  Request request{.bytes = kMiB, .line = scene.tape.line_of(kT, false)};
  REQUIRE(scene.tape.allocate(request).address != p);  // natively only the thread that frees is held up
  REQUIRE(!scene.fence.ordered_behind(kT, used));
  request.own_free = freed.record;
  REQUIRE(scene.tape.allocate(request).address == p);
  REQUIRE(scene.fence.ordered_behind(kT, used));
}

TEST_CASE("where memory is short, a thread waits for its own plain free as long as the driver's would have") {
  TapeOptions options;
  options.max = 64 * kMiB;
  options.growth_bytes = 0;
  options.host_wait_ms = 0;
  options.address_space = 64 * kGiB;
  MemoryBacking backing({.card_bytes = 8 * kGiB});
  MemoryFence fence({.host_wait_helps = false, .looks_until_done = 100});
  Tape tape(options, backing, fence);
  std::uint64_t p = tape.allocate({.bytes = 64 * kMiB}).address;
  fence.submit(kS);
  Freed freed = tape.free(p, kContextLine);
  REQUIRE(!tape.allocate({.bytes = 64 * kMiB}).ok());  // another thread
  REQUIRE(tape.allocate({.bytes = 64 * kMiB, .own_free = freed.record}).address == p);
  REQUIRE(tape.stats().host_waits.get() == 1);
}

TEST_CASE("while a thread waits for its own free, other threads go on") {
  TapeOptions options;
  options.max = 64 * kMiB;
  options.growth_bytes = 0;
  options.host_wait_ms = 0;
  options.address_space = 64 * kGiB;
  MemoryBacking backing({.card_bytes = 8 * kGiB});
  MemoryFence fence({.host_wait_helps = false});
  Tape tape(options, backing, fence);
  std::uint64_t small = tape.allocate({.bytes = kMiB}).address;
  std::uint64_t p = tape.allocate({.bytes = 63 * kMiB}).address;
  auto used = fence.submit(kS);
  Freed freed = tape.free(p, kContextLine);
  std::thread other([&] {
    while (tape.stats().host_waits.get() == 0) std::this_thread::yield();
    tape.free(small, kContextLine);
    auto hold = tape.hold();
    fence.complete(used);
  });
  REQUIRE(tape.allocate({.bytes = 63 * kMiB, .own_free = freed.record}).ok());
  other.join();
}

TEST_CASE("a tape that grows exactly gives the GPU a moment first, and once only behind work that does not end") {
  TapeOptions options;
  options.exact_growth = true;
  options.address_space = 64 * kGiB;
  MemoryBacking backing({.card_bytes = 8 * kGiB});
  MemoryFence fence({.host_wait_helps = false, .looks_until_done = 3});
  Tape tape(options, backing, fence);
  std::uint64_t p = tape.allocate({.bytes = 64 * kMiB}).address;
  fence.submit(kS);
  Freed freed = tape.free(p, kContextLine);
  REQUIRE(tape.allocate({.bytes = 64 * kMiB, .own_free = freed.record}).address == p);
  REQUIRE(tape.stats().host_waits.get() == 1);

  options.host_wait_ms = 1;
  MemoryFence endless({.host_wait_helps = false});
  Tape stuck(options, backing, endless);
  p = stuck.allocate({.bytes = 64 * kMiB}).address;
  endless.submit(kS);
  freed = stuck.free(p, kContextLine);
  for (int i = 0; i < 4; ++i) {
    Grant grant = stuck.allocate({.bytes = 64 * kMiB, .own_free = freed.record});
    REQUIRE(grant.ok());
    REQUIRE(grant.address != p);
  }
  REQUIRE(stuck.stats().host_waits.get() == 1);
}

TEST_CASE("a stream takes memory that nothing waits for before what another stream freed") {
  Scene scene;
  scene.on(kT, 512);
  std::uint64_t p = scene.on(kS, kMiB);
  scene.on(kS, 512);  // keeps the hole to come apart from the rest
  auto before_free = scene.fence.submit(kS);
  scene.free_on(kS, p);
  REQUIRE(scene.on(kT, kMiB) != p);
  REQUIRE(!scene.fence.ordered_behind(kT, before_free));
  REQUIRE(scene.tape.stats().fences.get() == 0);
  scene.fence.complete(before_free);
  REQUIRE(scene.on(kT, kMiB) == p);
}

TEST_CASE("another stream waits for the free, not for what came after it") {
  Scene scene({.max = 2 * kMiB, .growth_bytes = 0});
  scene.on(kT, 512);
  std::uint64_t p = scene.on(kS, kMiB);
  scene.on(kS, kMiB - 512);  // there is nothing else
  auto before_free = scene.fence.submit(kS);
  scene.free_on(kS, p);
  auto after_free = scene.fence.submit(kS);
  std::uint64_t q = scene.on(kT, kMiB);
  REQUIRE(q == p);
  REQUIRE(scene.fence.ordered_behind(kT, before_free));
  REQUIRE(!scene.fence.ordered_behind(kT, after_free));
}

TEST_CASE("memory whose record would come too late is only used once complete") {
  // S is alone, so its free is not recorded. By the time T appears, S has been given work that waits for T: waiting for
  // S would hang.
  Scene scene;
  std::uint64_t p = scene.on(kS, kMiB);
  scene.on(kS, 512);  // keeps the hole to come apart from the rest
  auto used = scene.fence.submit(kS);
  scene.free_on(kS, p);
  auto blocked_on_t = scene.fence.submit(kS);
  std::uint64_t q = scene.on(kT, kMiB);
  REQUIRE(q != 0);
  REQUIRE(q != p);
  REQUIRE(!scene.fence.ordered_behind(kT, blocked_on_t));
  scene.fence.complete(blocked_on_t);
  REQUIRE(scene.on(kT, kMiB) == p);
  REQUIRE(scene.fence.is_complete(used));
}

TEST_CASE("free handles whose work is not done are waited for, recorded or not, before the card is asked") {
  // S is alone: of its frees that of the large block is recorded, the others are not.
  TapeOptions options;
  options.growth_bytes = 0;
  Scene scene(options);
  std::uint64_t blocks[6];
  for (auto& block : blocks) block = scene.on(kS, 8 * kMiB);
  const std::uint64_t large = scene.on(kS, 512 * kMiB);
  REQUIRE(scene.on(kS, 512) != 0);
  scene.fence.submit(kS);
  scene.free_on(kS, large);
  scene.fence.submit(kS);
  for (int i = 0; i < 6; i += 2) scene.free_on(kS, blocks[i]);
  const std::uint64_t held = scene.tape.stats().reserved.current();
  REQUIRE(scene.on(kS, 536 * kMiB) != 0);
  CHECK(scene.tape.stats().reserved.current() == held);
  CHECK(scene.tape.stats().migrations.get() >= 3);
  CHECK(scene.tape.stats().host_waits.get() > 0);
}

TEST_CASE("a hole that fits is waited for before handles are waited for that would move") {
  Scene scene;
  const std::uint64_t p = scene.plain(16 * kMiB);
  REQUIRE(scene.plain(2 * kMiB) != 0);  // keeps the holes to come apart
  const std::uint64_t other = scene.plain(8 * kMiB);
  REQUIRE(scene.plain(2 * kMiB) != 0);
  while (scene.tape.holes().bytes != 0) REQUIRE(scene.plain(2 * kMiB) != 0);
  scene.fence.submit(kS);
  scene.free_plain(p);
  scene.free_plain(other);
  const std::uint64_t held = scene.tape.stats().reserved.current();
  CHECK(scene.plain(16 * kMiB) == p);
  CHECK(scene.tape.stats().migrations.get() == 0);
  CHECK(scene.tape.stats().reserved.current() == held);
  // None fits: then they move.
  CHECK(scene.plain(7 * kMiB) == other);
  scene.fence.submit(kS);
  scene.free_plain(p);
  scene.free_plain(other);
  CHECK(scene.plain(24 * kMiB) != 0);
  CHECK(scene.tape.stats().migrations.get() > 0);
  CHECK(scene.tape.stats().reserved.current() == held);
}

TEST_CASE("a plain request does not stop the context for a stream's free") {
  Scene scene;
  scene.on(kT, 512);
  std::uint64_t p = scene.on(kS, kMiB);
  scene.on(kS, 512);  // keeps the hole to come apart from the rest
  auto used = scene.fence.submit(kS);
  scene.free_on(kS, p);
  REQUIRE(scene.plain(kMiB) != p);
  REQUIRE(scene.fence.calls(MemoryFence::Operation::kWait) == 0);
  scene.fence.complete(used);
  REQUIRE(scene.plain(kMiB) == p);
}

TEST_CASE("[case-19] during a capture nothing is recorded or waited for, and the record follows when it ends") {
  Scene scene;
  std::uint64_t p = scene.plain(kMiB);
  scene.on(kS, 512);  // keeps the hole to come apart from the rest
  auto used = scene.fence.submit(kS);
  {
    auto hold = scene.tape.hold();
    scene.fence.begin_capture(kT);
  }
  scene.free_plain(p);
  std::uint64_t q = scene.plain(kMiB);
  REQUIRE(q != p);
  scene.fence.end_captures();
  scene.tape.captures_ended();
  scene.fence.complete(used);
  REQUIRE(scene.plain(kMiB) == p);
}

TEST_CASE("where addresses are scarce a shorter range does, but not one that the pool could fill") {
  for (const std::uint64_t max : {kGiB, 16 * kGiB, 40 * kGiB}) {
    MemoryBacking backing({.card_bytes = 64 * kGiB});
    MemoryFence fence;
    TapeOptions options;
    options.address_space = 64 * kGiB;
    options.max = max;
    backing.refuse(MemoryBacking::Operation::kReserve, 1, 2);
    Tape tape(options, backing, fence);
    CHECK(tape.started() == (max <= 16 * kGiB));
    CHECK(tape.start_error() == (tape.started() ? 0 : 2));
    CHECK(tape.allocate({.bytes = kMiB}).ok() == tape.started());
  }
}

TEST_CASE("an awaited free returns when its work is done, but not later than a capture that puts its record off") {
  Scene scene({}, {.card_bytes = 8 * kGiB}, {.looks_until_done = 3});
  const std::uint64_t first = scene.plain(kMiB);
  const std::uint64_t second = scene.plain(kMiB);
  const auto used = scene.fence.submit(kS);
  REQUIRE(scene.tape.free(first, kContextLine, WorkOnIt::kAwaited).done);
  REQUIRE(scene.fence.is_complete(used));
  const auto later = scene.fence.submit(kS);
  scene.fence.begin_capture(kT);
  REQUIRE_FALSE(scene.tape.free(second, kContextLine, WorkOnIt::kAwaited).done);
  REQUIRE_FALSE(scene.fence.is_complete(later));
}

TEST_CASE("what was freed before a capture is served during it, once it is done") {
  Scene scene;
  const std::uint64_t p = scene.plain(kMiB);
  scene.on(kS, 512);  // keeps the hole to come apart from the rest
  const auto used = scene.fence.submit(kS);
  scene.free_plain(p);
  scene.fence.begin_capture(kT);
  REQUIRE(scene.plain(kMiB) != p);
  scene.fence.complete(used);
  REQUIRE(scene.plain(kMiB) == p);
}

TEST_CASE("a destroyed stream's memory belongs to anyone once its work is done") {
  Scene scene;
  std::uint64_t p = scene.on(kS, kMiB);
  scene.on(kS, 512);  // keeps the hole to come apart from the rest
  auto used = scene.fence.submit(kS);
  scene.free_on(kS, p);
  scene.tape.stream_ending(kS);
  // The handle is used again for a new stream, which is not the old one.
  REQUIRE(scene.on(kS, kMiB) != p);
  scene.fence.complete(used);
  REQUIRE(scene.on(kT, kMiB) == p);
}

TEST_CASE("a stream has one line, and streams that come and go leave no line behind") {
  Scene scene;
  const Line keeps = scene.tape.line_of(kS, false);
  Line most = 0;
  for (StreamRef stream = kT; stream < kT + 1000; ++stream) {
    scene.free_on(stream, scene.on(stream, kMiB));
    const Line line = scene.tape.line_of(stream, false);
    REQUIRE(line == scene.tape.line_of(stream, false));
    REQUIRE(line != keeps);
    most = std::max(most, line);
    scene.fence.complete(scene.fence.point_of(kWholeContext));
    scene.tape.stream_ending(stream);
  }
  REQUIRE(scene.tape.line_of(kS, false) == keeps);
  REQUIRE(most <= keeps + 2);  // the one before may have left a hole that the next one takes
  REQUIRE(scene.tape.validate() == nullptr);
}

TEST_CASE("with internal dependencies forbidden no wait is put into the stream") {
  Scene scene;
  Line t = scene.tape.line_of(kT, false);
  std::uint64_t p = scene.on(kS, kMiB);
  scene.on(kS, 512);  // keeps the hole to come apart from the rest
  auto used = scene.fence.submit(kS);
  scene.free_on(kS, p);
  Grant grant = scene.tape.allocate({.bytes = kMiB, .line = t, .may_wait = false});
  REQUIRE(grant.ok());
  REQUIRE(grant.address != p);
  REQUIRE(scene.fence.calls(MemoryFence::Operation::kWait) == 0);
  scene.fence.complete(used);
  REQUIRE(scene.tape.allocate({.bytes = kMiB, .line = t, .may_wait = false}).address == p);
}

TEST_CASE("what others reach without a reference is never used again") {
  Scene scene;
  std::uint64_t p = scene.plain(4 * kMiB);
  REQUIRE(scene.tape.share(p + 5, Sharing::kFixed));
  scene.free_plain(p);
  scene.fence.complete(scene.fence.point_of(kWholeContext));
  for (int i = 0; i < 64; ++i) {
    std::uint64_t q = scene.plain(kMiB);
    REQUIRE((q >= p + 4 * kMiB || q + kMiB <= p));
  }
  scene.tape.trim(0);
  REQUIRE(scene.backing.usable(p, 4 * kMiB));
  REQUIRE(scene.tape.free(p, kContextLine).result == FreeResult::kNotABlock);
  REQUIRE(scene.tape.validate() == nullptr);
}

TEST_CASE("what others hold a reference to leaves the tape, and its place is used again", "[case-18]") {
  TapeOptions options;
  options.max = 64 * kMiB;
  options.growth_bytes = 0;
  Scene scene(options);
  const std::uint64_t kept = scene.plain(100);  // the handle below it stays
  for (int i = 0; i < 500; ++i) {
    const std::uint64_t p = scene.plain(3 * kMiB);
    REQUIRE(scene.tape.share(p, i % 2 ? Sharing::kReferenced : Sharing::kAnnounced));
    scene.fence.submit(kS);
    scene.free_plain(p);
    REQUIRE(scene.backing.usable(p, 3 * kMiB));  // work may still be on it
    scene.fence.complete(scene.fence.point_of(kWholeContext));
    REQUIRE(scene.tape.validate() == nullptr);
  }
  REQUIRE(scene.backing.usable(kept, 100));
  REQUIRE(scene.tape.trim(0) != 0);
  REQUIRE(scene.tape.stats().reserved.current() <= 4 * kMiB);
  REQUIRE(scene.tape.validate() == nullptr);
}

TEST_CASE("what nobody reaches any more is used again last, behind its own work", "[case-18]") {
  const bool before_the_free = GENERATE(true, false);
  TapeOptions options;
  options.max = 8 * kMiB;
  options.growth_bytes = 0;
  options.host_wait_ms = 0;
  Scene scene(options);
  const std::uint64_t p = scene.plain(3 * kMiB);
  const std::uint64_t q = scene.plain(3 * kMiB);
  REQUIRE(!scene.tape.release(p));  // never shared
  REQUIRE(scene.tape.share(p, Sharing::kAnnounced));
  REQUIRE(scene.tape.share(q, Sharing::kAnnounced));
  const auto used = scene.fence.submit(kS);
  if (before_the_free) REQUIRE(scene.tape.release(p));
  scene.free_plain(p);
  scene.free_plain(q);
  if (!before_the_free) REQUIRE(scene.tape.release(p));
  REQUIRE(!scene.tape.release(p));
  REQUIRE(scene.plain(2 * kMiB) >= q + 3 * kMiB);
  REQUIRE(!scene.tape.allocate({.bytes = 3 * kMiB}).ok());  // its work is not done
  scene.fence.complete(used);
  REQUIRE(scene.plain(3 * kMiB) == p);
  REQUIRE(!scene.tape.allocate({.bytes = 3 * kMiB}).ok());  // q is somebody's, and shares a handle with p
  REQUIRE(scene.tape.validate() == nullptr);
}

TEST_CASE("each block has a buffer id of its own for life") {
  Scene scene;
  std::uint64_t p = scene.plain(kMiB);
  BlockInfo first;
  BlockInfo again;
  REQUIRE(scene.tape.find(p, first));
  REQUIRE(scene.tape.find(p + 77, again));
  REQUIRE(first.buffer_id == again.buffer_id);
  scene.free_plain(p);
  REQUIRE(!scene.tape.find(p, again));
  REQUIRE(scene.plain(kMiB) == p);
  REQUIRE(scene.tape.find(p, again));
  REQUIRE(again.buffer_id != first.buffer_id);
}

TEST_CASE("free handles move before the card is asked, and a cap is kept") {
  TapeOptions options;
  options.growth_bytes = 0;
  options.max = 100 * kMiB;
  Scene scene(options);
  std::uint64_t blocks[10];
  for (auto& block : blocks) block = scene.plain(10 * kMiB);
  for (int i = 0; i < 10; i += 2) scene.free_plain(blocks[i]);
  // 50 MiB lie free in five holes; only moving them together makes room for 40.
  REQUIRE(scene.plain(40 * kMiB) != 0);
  REQUIRE(scene.tape.stats().reserved.peak() <= 100 * kMiB);
  REQUIRE(scene.tape.stats().migrations.get() > 0);
  REQUIRE(scene.backing.broken_rule() == nullptr);
  REQUIRE(scene.tape.validate() == nullptr);
  REQUIRE(scene.tape.allocate({.bytes = 20 * kMiB}).verdict == Verdict::kCapacity);
}

TEST_CASE("a pool that grows takes larger handles for larger blocks, and the more it holds") {
  TapeOptions options;
  options.exact_growth = true;
  Scene scene(options, {.card_bytes = 32 * kGiB});
  const auto handles_for = [&](std::uint64_t bytes) {
    const std::uint64_t before = scene.backing.calls(MemoryBacking::Operation::kCreate);
    REQUIRE(scene.plain(bytes) != 0);
    return scene.backing.calls(MemoryBacking::Operation::kCreate) - before;
  };
  CHECK(handles_for(64 * kMiB) == 32);    // the least there is
  CHECK(handles_for(448 * kMiB) == 112);  // 4 MiB: root of 448 MiB x 4 x 512 MiB/16384, as a power of two
  CHECK(handles_for(16 * kMiB) == 8);
  CHECK(handles_for(16 * kGiB) == 128);  // 128 MiB at most
  CHECK(handles_for(512 * kMiB) == 32);
  CHECK(handles_for(16 * kMiB) == 1);  // 1/1024 of what is held
  CHECK(scene.tape.validate() == nullptr);
}

TEST_CASE("[case-21] memory in use by the GPU is not unmapped") {
  TapeOptions options;
  options.growth_bytes = 0;
  options.host_wait_ms = 1;
  MemoryBacking backing({.card_bytes = 100 * kMiB});
  MemoryFence fence({.host_wait_helps = false});
  options.address_space = 64 * kGiB;
  Tape tape(options, backing, fence);
  std::uint64_t a = tape.allocate({.bytes = 40 * kMiB}).address;
  std::uint64_t keep = tape.allocate({.bytes = 20 * kMiB}).address;
  REQUIRE(keep != 0);
  auto used = fence.submit(kS);
  tape.free(a, kContextLine);
  REQUIRE(tape.trim(0) == 0);
  REQUIRE(!tape.allocate({.bytes = 60 * kMiB}).ok());
  REQUIRE(backing.usable(a, 40 * kMiB));
  REQUIRE(tape.stats().oom_capacity.get() + tape.stats().oom_fragmentation.get() == 0);
  fence.complete(used);
  REQUIRE(tape.allocate({.bytes = 60 * kMiB}).ok());
}

TEST_CASE("headroom is kept at growth") {
  TapeOptions options;
  options.headroom = 100 * kMiB;
  Scene scene(options, {.card_bytes = 300 * kMiB});
  while (scene.plain(10 * kMiB) != 0) {
  }
  REQUIRE(scene.backing.card_memory().free >= 100 * kMiB);
  REQUIRE(scene.tape.stats().live.current() == 200 * kMiB);
}

TEST_CASE("the pre-reservation is mapped in pieces and taken while it grows") {
  TapeOptions options;
  options.size = 1000 * kMiB;
  Scene scene(options);
  REQUIRE(scene.tape.prefill(256 * kMiB) > 0);
  REQUIRE(scene.plain(100 * kMiB) != 0);
  while (scene.tape.prefill(256 * kMiB) > 0) {
  }
  REQUIRE(scene.tape.stats().reserved.current() == 1000 * kMiB);
  REQUIRE(scene.tape.stats().needed.current() == 100 * kMiB);
  REQUIRE(scene.tape.stats().growth_steps.get() == 0);
  REQUIRE(scene.tape.trim(200 * kMiB) > 0);
  REQUIRE(scene.tape.stats().reserved.current() <= 232 * kMiB);
}

TEST_CASE("memory that was given back is not pre-reserved again") {
  TapeOptions options;
  options.size = 1000 * kMiB;
  Scene scene(options);
  REQUIRE(scene.tape.prefill(512 * kMiB) > 0);
  REQUIRE(scene.tape.trim(100 * kMiB) > 0);
  const std::uint64_t kept = scene.tape.stats().reserved.current();
  REQUIRE(scene.tape.prefill(512 * kMiB) == 0);
  REQUIRE(scene.tape.stats().reserved.current() == kept);
}

TEST_CASE("a driver that refuses to map leaves a whole tape behind") {
  Scene scene;
  scene.backing.refuse(MemoryBacking::Operation::kMap, 1, 719);
  scene.backing.refuse(MemoryBacking::Operation::kCreate, 2, 719);  // it is tried twice
  Grant grant = scene.tape.allocate({.bytes = kMiB});
  REQUIRE(!grant.ok());
  REQUIRE(grant.code == 719);
  REQUIRE(scene.backing.handles() == 0);
  REQUIRE(scene.tape.validate() == nullptr);
  REQUIRE(scene.plain(kMiB) != 0);
}

TEST_CASE("a retired tape gives everything back") {
  Scene scene;
  std::uint64_t p = scene.plain(kMiB);
  scene.tape.retire();
  REQUIRE(scene.backing.handles() == 0);
  REQUIRE(!scene.tape.contains(p));
  REQUIRE(scene.tape.free(p, kContextLine).result == FreeResult::kNotABlock);
  REQUIRE(!scene.tape.allocate({.bytes = kMiB}).ok());
  REQUIRE(scene.backing.broken_rule() == nullptr);
  REQUIRE(scene.tape.stats().live.peak() == kMiB);
}

TEST_CASE("large holes are kept whole for large requests under max_split") {
  TapeOptions options;
  options.max_split = 4 * kMiB;
  options.growth_bytes = 0;
  Scene scene(options);
  std::uint64_t big = scene.plain(64 * kMiB);
  std::uint64_t end = scene.plain(2 * kMiB);
  scene.free_plain(big);
  REQUIRE(scene.plain(kMiB) > end);
  REQUIRE(scene.plain(64 * kMiB) == big);
}

TEST_CASE("the host is blocked no longer than its patience, however many records do not complete") {
  TapeOptions options;
  options.growth_bytes = 0;
  options.host_wait_ms = 1;
  options.address_space = 64 * kGiB;
  MemoryBacking backing({.card_bytes = 100 * kMiB});
  MemoryFence fence({.host_wait_helps = false});
  Tape tape(options, backing, fence);
  std::uint64_t blocks[10];
  for (auto& block : blocks) block = tape.allocate({.bytes = 10 * kMiB}).address;
  for (int i = 0; i < 10; i += 2) {
    fence.submit(kS);
    tape.free(blocks[i], kContextLine);
  }
  REQUIRE(!tape.allocate({.bytes = 40 * kMiB}).ok());
  REQUIRE(fence.calls(MemoryFence::Operation::kHostWait) == 1);
}

TEST_CASE("with pool.reclaim nobody asks before enough bytes are freed, or the tape cannot grow") {
  TapeOptions options;
  options.reclaim = 8 * kMiB;
  options.growth_bytes = 0;
  options.max = 64 * kMiB;
  Scene scene(options);
  std::uint64_t p = scene.plain(4 * kMiB);
  scene.plain(2 * kMiB);
  scene.fence.submit(kS);
  scene.free_plain(p);
  scene.fence.complete(scene.fence.point_of(kWholeContext));
  REQUIRE(scene.plain(4 * kMiB) != p);  // gathered; the tape grows, and looks at what it could move
  std::uint64_t again = scene.plain(4 * kMiB);
  REQUIRE(again == p);
  // At the cap nothing can be gathered any more.
  std::uint64_t rest = scene.plain(40 * kMiB);
  REQUIRE(rest != 0);
  scene.fence.submit(kS);
  scene.free_plain(again);
  REQUIRE(scene.plain(4 * kMiB) != 0);
  REQUIRE(scene.plain(20 * kMiB) == 0);
}

TEST_CASE("overflow: host memory stands in, apart from the card's, and goes first") {
  TapeOptions options;
  options.max = 64 * kMiB;
  options.growth_bytes = 0;
  options.exact_growth = true;
  options.overflow = 32 * kMiB;
  Scene scene(options);
  const std::uint64_t on_card = scene.plain(64 * kMiB);
  REQUIRE(on_card != 0);
  REQUIRE(scene.plain(kMiB) == 0);
  const std::uint64_t first = scene.tape.allocate_overflow({.bytes = 5 * kMiB}).address;
  const std::uint64_t second = scene.tape.allocate_overflow({.bytes = 20 * kMiB}).address;
  REQUIRE(first != 0);
  REQUIRE(second != 0);
  REQUIRE(!scene.tape.allocate_overflow({.bytes = 20 * kMiB}).ok());
  const Stats& stats = scene.tape.stats();
  CHECK(stats.overflow.current() <= options.overflow);
  CHECK(stats.overflow_live.current() == 25 * kMiB);
  CHECK(stats.overflows.get() == 2);
  CHECK(stats.reserved.current() == 64 * kMiB);
  CHECK(scene.tape.free_bytes() == 0);
  CHECK(scene.backing.card_memory().total - scene.backing.card_memory().free == 64 * kMiB);
  REQUIRE(scene.tape.validate() == nullptr);

  SECTION("a hole in host memory is for overflow only, and is used again") {
    scene.free_plain(second);
    CHECK(scene.tape.holes().bytes == 0);
    REQUIRE(scene.plain(kMiB) == 0);
    const std::uint64_t held = stats.overflow.current();
    CHECK(scene.tape.allocate_overflow({.bytes = 20 * kMiB}).ok());
    CHECK(stats.overflow.current() == held);
  }
  SECTION("trimming gives it back before the card's memory") {
    scene.free_plain(first);
    scene.free_plain(second);
    scene.fence.complete(scene.fence.point_of(kWholeContext));
    CHECK(scene.tape.trim(64 * kMiB) == 0);
    CHECK(stats.overflow.current() == 0);
    CHECK(stats.reserved.current() == 64 * kMiB);
  }
  SECTION("so does growth on the card") {
    scene.free_plain(first);
    scene.free_plain(second);
    scene.free_plain(on_card);
    scene.fence.complete(scene.fence.point_of(kWholeContext));
    scene.tape.trim(0);
    CHECK(stats.reserved.current() == 0);
    REQUIRE(scene.plain(8 * kMiB) != 0);
    CHECK(stats.overflow.current() == 0);
  }
  CHECK(scene.tape.validate() == nullptr);
  CHECK(scene.backing.broken_rule() == nullptr);
}

TEST_CASE("overflow: host memory moves within its own area like the card's") {
  TapeOptions options;
  options.max = 2 * kMiB;
  options.overflow = 96 * kMiB;
  Scene scene(options);
  REQUIRE(scene.plain(2 * kMiB) != 0);
  std::vector<std::uint64_t> blocks;
  for (int i = 0; i < 48; ++i) blocks.push_back(scene.tape.allocate_overflow({.bytes = 2 * kMiB}).address);
  for (std::size_t i = 0; i < blocks.size(); i += 2) {
    REQUIRE(blocks[i] != 0);
    scene.free_plain(blocks[i]);
  }
  scene.fence.complete(scene.fence.point_of(kWholeContext));
  CHECK(scene.tape.allocate_overflow({.bytes = 40 * kMiB}).ok());
  CHECK(scene.tape.stats().overflow.peak() <= options.overflow);
  CHECK(scene.tape.validate() == nullptr);
  CHECK(scene.backing.broken_rule() == nullptr);
}

TEST_CASE("overflow: none where it is off, where the driver has none, and where the host is full") {
  TapeOptions options;
  options.max = 2 * kMiB;
  SECTION("off") {
    Scene scene(options);
    CHECK(!scene.tape.allocate_overflow({.bytes = kMiB}).ok());
  }
  options.overflow = 64 * kMiB;
  SECTION("the driver has none") {
    Scene scene(options, {.card_bytes = 8 * kGiB, .host_bytes = 0});
    CHECK(!scene.tape.allocate_overflow({.bytes = kMiB}).ok());
    CHECK(scene.plain(kMiB) != 0);
  }
  SECTION("slabs cannot") {
    Scene scene(options, {.placement = Placement::kGiven, .card_bytes = 8 * kGiB});
    CHECK(!scene.tape.allocate_overflow({.bytes = kMiB}).ok());
  }
  SECTION("the host is full") {
    Scene scene(options, {.card_bytes = 8 * kGiB, .host_bytes = 8 * kMiB});
    CHECK(scene.tape.allocate_overflow({.bytes = 8 * kMiB}).ok());
    CHECK(!scene.tape.allocate_overflow({.bytes = kMiB}).ok());
    CHECK(scene.tape.validate() == nullptr);
  }
}

TEST_CASE("a small block freed lately goes whole to a request of its size, the one that waits longest first") {
  Scene scene;
  const std::uint64_t sizes[] = {3000, 5000, 3000, 9000};
  std::vector<std::uint64_t> blocks;
  for (std::uint64_t bytes : sizes) blocks.push_back(scene.on(kS, bytes));
  for (std::uint64_t block : blocks) scene.free_on(kS, block);
  CHECK(scene.tape.validate() == nullptr);
  CHECK(scene.tape.free(blocks[1], kContextLine).result == FreeResult::kNotABlock);
  BlockInfo info;
  CHECK(!scene.tape.find(blocks[1], info));
  CHECK(scene.on(kS, 3000) == blocks[0]);
  CHECK(scene.on(kS, 3072) == blocks[2]);
  CHECK(scene.on(kS, 9000) == blocks[3]);
  CHECK(scene.tape.stats().same_stream_reuses.get() == 3);
  CHECK(scene.tape.validate() == nullptr);
}

TEST_CASE("what was freed lately is joined before memory is taken, and goes back to the card") {
  TapeOptions options;
  options.max = 2 * kMiB;
  Scene scene(options);
  std::vector<std::uint64_t> blocks;
  for (int i = 0; i < 32; ++i) blocks.push_back(scene.on(kS, 64 * 1024));
  for (std::uint64_t block : blocks) scene.free_on(kS, block);
  SECTION("a request that only all of them can serve") { CHECK(scene.on(kS, 2 * kMiB) == blocks[0]); }
  SECTION("trim") {
    scene.fence.complete(scene.fence.point_of(kWholeContext));
    CHECK(scene.tape.trim(0) == 2 * kMiB);
    CHECK(scene.tape.stats().reserved.current() == 0);
  }
  CHECK(scene.tape.stats().growth_steps.get() == 1);
  CHECK(scene.tape.validate() == nullptr);
}

TEST_CASE("a block freed lately on another stream is no shortcut while its work may run") {
  Scene scene;
  const std::uint64_t block = scene.on(kS, 4096);
  REQUIRE(scene.on(kT, 4096) != 0);
  scene.free_on(kS, block);
  const std::uint64_t other = scene.on(kT, 4096);
  CHECK((other != block || scene.tape.stats().fences.get() == 1));
  CHECK(scene.plain(4096) != block);
  CHECK(scene.tape.validate() == nullptr);
}

TEST_CASE("with memory to spare each of two streams gets back what it freed itself") {
  Scene scene;
  std::vector<std::uint64_t> of_s, of_t;
  for (int i = 0; i < 3; ++i) {
    of_s.push_back(scene.on(kS, 4096));
    of_t.push_back(scene.on(kT, 4096));
  }
  scene.fence.submit(kS);
  scene.fence.submit(kT);
  for (std::uint64_t block : of_s) scene.free_on(kS, block);
  for (std::uint64_t block : of_t) scene.free_on(kT, block);
  CHECK(scene.on(kT, 4096) == of_t[0]);
  CHECK(scene.on(kS, 4096) == of_s[0]);
  CHECK(scene.on(kS, 4096) == of_s[1]);
  CHECK(scene.on(kT, 4096) == of_t[1]);
  CHECK(scene.tape.validate() == nullptr);
  const std::uint64_t plain = scene.plain(4096);
  CHECK((plain != of_s[2] && plain != of_t[2]));
  CHECK(scene.tape.stats().fences.get() == 0);
  CHECK(scene.tape.stats().same_stream_reuses.get() == 4);
  CHECK(scene.tape.validate() == nullptr);
}

TEST_CASE("overflow: a request for the card's memory never gets the host's, however idle that is") {
  TapeOptions options;
  options.max = 4 * kMiB;
  options.overflow = 32 * kMiB;
  Scene scene(options);
  const std::uint64_t on_host[] = {scene.tape.allocate_overflow({.bytes = 4096}).address,
                                   scene.tape.allocate_overflow({.bytes = kMiB}).address};
  for (std::uint64_t block : on_host) REQUIRE(scene.tape.free(block, kContextLine, WorkOnIt::kDone).requested != 0);
  for (std::uint64_t bytes : {std::uint64_t{4096}, kMiB}) {
    const std::uint64_t block = scene.plain(bytes);
    REQUIRE(block != 0);
    CHECK(block != on_host[0]);
    CHECK(block != on_host[1]);
  }
  CHECK(scene.tape.stats().overflow_live.current() == 0);
  CHECK(scene.tape.validate() == nullptr);
}

TEST_CASE("a tag's account holds what its live blocks were asked for with; a tag without one is named at the free") {
  for (Account::Writers writers : {Account::Writers::kOne, Account::Writers::kMany}) {
    MemoryBacking backing({.card_bytes = 8 * kGiB});
    MemoryFence fence;
    Account account;
    Accounts accounts;
    accounts.open(7, account);
    TapeOptions options;
    options.address_space = 64 * kGiB;
    Tape tape(options, backing, fence, {.accounts = &accounts, .writers = writers});
    const Line line = tape.line_of(kS, false);
    const std::uint64_t first = tape.allocate({.bytes = 1000, .line = line, .tag = 7}).address;
    const std::uint64_t second = tape.allocate({.bytes = 3 * kMiB, .line = line, .tag = 7}).address;
    const std::uint64_t other = tape.allocate({.bytes = 1000, .line = line, .tag = 8}).address;
    CHECK(account.bytes() == 1000 + 3 * kMiB);
    CHECK(tape.free(other, line).tag == 8);
    CHECK(account.bytes() == 1000 + 3 * kMiB);
    CHECK(tape.free(first, line).tag == 0);
    CHECK(account.bytes() == 3 * kMiB);
    CHECK(tape.allocate({.bytes = 999, .line = line, .tag = 7}).address == other);  // of the size freed first
    CHECK(account.bytes() == 999 + 3 * kMiB);
    CHECK(tape.free(second, kContextLine).tag == 0);
    CHECK(account.bytes() == 999);
    tape.retire();
    CHECK(account.bytes() == 999);  // to the program it is its pool's still
    account.subtract(999, Account::Writers::kMany);
    CHECK(account.bytes() == 0);
  }
}
