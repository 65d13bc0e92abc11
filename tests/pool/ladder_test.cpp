// The ladder from a hole to a refusal, rung by rung: each is reached although those below it are broken or empty, none
// above it is touched, and a driver that fails on the way leaves a whole tape behind.
#include <vector>

#include "pool/memory_backing.h"
#include "pool/memory_fence.h"
#include "pool/tape.h"
#include "tests/catch.h"

using namespace gpupool;

namespace {

using Memory = MemoryBacking::Operation;
using Time = MemoryFence::Operation;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kAlways = ~std::uint64_t{0};
constexpr int kNoMemory = 2;
constexpr int kFailed = 719;
constexpr StreamRef kS = 0x1000;
constexpr StreamRef kT = 0x2000;

TapeOptions options(std::uint64_t max) {
  TapeOptions chosen;
  chosen.address_space = std::uint64_t{64} << 30;
  chosen.max = max;
  chosen.growth_bytes = 0;
  chosen.host_wait_ms = 1;
  return chosen;
}

// A card, a GPU that gets nothing done by itself, and a tape.
struct Scene {
  explicit Scene(const TapeOptions& chosen, const MemoryBacking::Options& card = {.card_bytes = 1024 * kMiB},
                 const MemoryFence::Options& gpu = {.host_wait_helps = false})
      : backing(card), fence(gpu), tape(chosen, backing, fence) {}
  ~Scene() {
    CHECK(tape.validate() == nullptr);
    CHECK(backing.broken_rule() == nullptr);
  }
  Grant ask(std::uint64_t bytes) { return tape.allocate({.bytes = bytes}); }
  Grant ask_on(StreamRef stream, std::uint64_t bytes) {
    return tape.allocate({.bytes = bytes, .line = tape.line_of(stream, false)});
  }
  void free(std::uint64_t address) { REQUIRE(tape.free(address, kContextLine).result == FreeResult::kFreed); }
  void free_on(StreamRef stream, std::uint64_t address) {
    REQUIRE(tape.free(address, tape.line_of(stream, false)).result == FreeResult::kFreed);
  }
  // Blocks of 2 MiB on the whole of a tape of `max` bytes, each second one of them free again, and done with.
  std::vector<std::uint64_t> checkered(std::uint64_t max) {
    std::vector<std::uint64_t> kept;
    for (std::uint64_t i = 0; i < max / (2 * kMiB); ++i) kept.push_back(ask(2 * kMiB).address);
    for (std::size_t i = 0; i < kept.size(); i += 2) free(kept[i]);
    fence.complete(fence.point_of(kWholeContext));
    return kept;
  }
  void no_more_memory() { backing.refuse(Memory::kCreate, 1, kNoMemory, kAlways); }
  void nothing_works() {
    for (const Memory operation : {Memory::kCreate, Memory::kMap, Memory::kUnmap})
      backing.refuse(operation, 1, kFailed, kAlways);
    for (const Time operation : {Time::kRecord, Time::kWait, Time::kQuery, Time::kHostWait})
      fence.refuse(operation, 1, kFailed, kAlways);
  }
  std::uint64_t memory_calls() const {
    return backing.calls(Memory::kCreate) + backing.calls(Memory::kDestroy) + backing.calls(Memory::kMap) +
           backing.calls(Memory::kUnmap);
  }

  std::uint64_t calls() const {
    return memory_calls() + fence.calls(Time::kRecord) + fence.calls(Time::kWait) + fence.calls(Time::kQuery);
  }

  MemoryBacking backing;
  MemoryFence fence;
  Tape tape;
};

// Two handles of at most `handle`, in each a block that keeps it where it is: holes of 24 MiB that are not neighbours.
struct Stranded : Scene {
  static TapeOptions with(std::uint64_t handle) {
    TapeOptions chosen = options(64 * kMiB);
    chosen.handle = handle;
    return chosen;
  }
  explicit Stranded(std::uint64_t handle) : Scene(with(handle)) {
    std::uint64_t whole[2];
    for (std::uint64_t& block : whole) block = ask(32 * kMiB).address;
    for (const std::uint64_t block : whole) {
      free(block);
      const std::uint64_t most = ask(24 * kMiB).address;
      REQUIRE(ask(8 * kMiB).ok());
      free(most);
    }
    fence.complete(fence.point_of(kWholeContext));
  }
};

}  // namespace

TEST_CASE("first a hole that needs nothing, though nothing works any more") {
  Scene scene(options(64 * kMiB));
  const std::uint64_t block = scene.ask_on(kS, 8 * kMiB).address;
  scene.fence.submit(kS);
  scene.free_on(kS, block);
  scene.nothing_works();
  const std::uint64_t before = scene.calls();
  CHECK(scene.ask_on(kS, 8 * kMiB).address == block);
  CHECK(scene.calls() == before);
}

TEST_CASE("then a hole behind a fence, before anything is moved or taken") {
  Scene scene(options(64 * kMiB));
  REQUIRE(scene.ask_on(kT, 2 * kMiB).ok());
  const std::uint64_t block = scene.ask_on(kS, 8 * kMiB).address;
  const auto used = scene.fence.submit(kS);
  scene.free_on(kS, block);
  const std::uint64_t before = scene.memory_calls();
  SECTION("the fence holds") {
    CHECK(scene.ask_on(kT, 8 * kMiB).address == block);
    CHECK(scene.fence.ordered_behind(kT, used));
    CHECK(scene.tape.stats().fences.get() == 1);
    CHECK(scene.memory_calls() == before);
  }
  SECTION("a fence that fails gives nobody the hole, and its error is not hidden") {
    scene.fence.refuse(Time::kWait, 1, kFailed, kAlways);
    const Grant grant = scene.ask_on(kT, 8 * kMiB);
    CHECK(grant.address != block);
    CHECK(grant.verdict == Verdict::kDriverError);
    CHECK(grant.code == kFailed);
  }
}

TEST_CASE("then what proves to be done, and until then other memory") {
  Scene scene(options(64 * kMiB));
  const std::uint64_t block = scene.ask(8 * kMiB).address;
  REQUIRE(scene.ask(kMiB).ok());
  const auto used = scene.fence.submit(kS);
  scene.free(block);
  const std::uint64_t elsewhere = scene.ask(8 * kMiB).address;
  CHECK(elsewhere != 0);
  CHECK(elsewhere != block);
  scene.fence.complete(used);
  const std::uint64_t before = scene.memory_calls();
  SECTION("the driver can tell") {
    CHECK(scene.ask(8 * kMiB).address == block);
    CHECK(scene.memory_calls() == before);
  }
  SECTION("a driver that cannot tell keeps the hole out of use") {
    scene.fence.refuse(Time::kQuery, 1, 0, kAlways);
    const Grant grant = scene.ask(8 * kMiB);
    CHECK(grant.address != block);
    CHECK(grant.ok());
  }
}

TEST_CASE("then free handles move, and nothing is taken from a card that has plenty") {
  Scene scene(options(512 * kMiB));
  scene.checkered(64 * kMiB);
  const std::uint64_t taken = scene.backing.calls(Memory::kCreate);
  std::uint64_t in_place_of_a_failed_move = 0;
  SECTION("though the driver has nothing more to give") { scene.no_more_memory(); }
  SECTION("a move that the driver refuses costs one handle at most") {
    scene.backing.refuse(GENERATE(Memory::kUnmap, Memory::kMap), 1, kFailed);
    in_place_of_a_failed_move = 1;
  }
  const std::uint64_t held = scene.tape.stats().reserved.current();
  CHECK(scene.ask(24 * kMiB).ok());
  CHECK(scene.tape.stats().migrations.get() >= 11);
  CHECK(scene.tape.stats().reserved.current() <= held + in_place_of_a_failed_move * 2 * kMiB);
  CHECK(scene.backing.calls(Memory::kCreate) <= taken + in_place_of_a_failed_move);
}

TEST_CASE("moves that always fail end in growth or a refusal, never in lost bytes") {
  for (const Memory operation : {Memory::kUnmap, Memory::kMap}) {
    Scene scene(options(64 * kMiB));
    const std::vector<std::uint64_t> blocks = scene.checkered(64 * kMiB);
    scene.backing.refuse(operation, 1, kFailed, kAlways);
    const Grant grant = scene.ask(24 * kMiB);
    CHECK(!grant.ok());
    CHECK(grant.code == kFailed);
    for (std::size_t i = 1; i < blocks.size(); i += 2) CHECK(scene.backing.usable(blocks[i], 2 * kMiB));
    CHECK(scene.tape.stats().live.current() == 32 * kMiB);
    scene.backing.refuse(operation, 1, 0, 0);
    CHECK(scene.ask(24 * kMiB).ok());
  }
}

TEST_CASE(
    "a handle that is too large for its new place is cut, and a driver that takes the memory meanwhile loses nothing") {
  for (const std::uint64_t refused : {0, 1, 2}) {
    TapeOptions chosen = options(56 * kMiB);
    chosen.handle = 32 * kMiB;
    Scene scene(chosen);
    const std::uint64_t large = scene.ask(32 * kMiB).address;
    REQUIRE(scene.ask(8 * kMiB).ok());
    const std::uint64_t last = scene.ask(16 * kMiB).address;
    scene.free(large);
    scene.free(last);
    scene.fence.complete(scene.fence.point_of(kWholeContext));
    const std::uint64_t destroyed = scene.backing.calls(Memory::kDestroy);
    if (refused != 0) scene.backing.refuse(Memory::kCreate, refused, kNoMemory);
    CHECK(scene.ask(40 * kMiB).ok());
    CHECK(scene.backing.calls(Memory::kDestroy) == destroyed + 1);
    CHECK(scene.ask(8 * kMiB).ok());
    CHECK(scene.tape.stats().reserved.current() == 56 * kMiB);
  }
}

TEST_CASE("then the card: the whole step where there is room, else no more than is missing") {
  TapeOptions chosen = options(100 * kMiB);
  chosen.growth_bytes = 64 * kMiB;
  Scene scene(chosen);
  REQUIRE(scene.ask(10 * kMiB).ok());
  CHECK(scene.tape.stats().reserved.current() == 64 * kMiB);
  REQUIRE(scene.ask(58 * kMiB).ok());
  CHECK(scene.tape.stats().reserved.current() == 100 * kMiB);
  SECTION("the last bytes of pool.max") { CHECK(scene.ask(32 * kMiB).ok()); }
  SECTION("not one more") { CHECK(scene.ask(32 * kMiB + 1).verdict == Verdict::kCapacity); }
  CHECK(scene.tape.stats().reserved.peak() == 100 * kMiB);
}

TEST_CASE("growth that the card refuses half way leaves what it got to the next request") {
  for (const int code : {kNoMemory, kFailed}) {
    TapeOptions chosen = options(512 * kMiB);
    chosen.handle = 2 * kMiB;
    Scene scene(chosen);
    scene.backing.refuse(Memory::kCreate, 4, code, 20);
    const Grant grant = scene.ask(32 * kMiB);
    CHECK(!grant.ok());
    CHECK(grant.code == code);
    CHECK(scene.tape.stats().live.current() == 0);
    const std::uint64_t taken = scene.backing.calls(Memory::kCreate);
    CHECK(scene.ask(6 * kMiB).ok());
    CHECK(scene.backing.calls(Memory::kCreate) == taken);
    scene.backing.refuse(Memory::kCreate, 1, 0, 0);
    CHECK(scene.ask(32 * kMiB).ok());
  }
}

TEST_CASE("then the host waits for what is in use, where the card has no more") {
  Scene scene(options(64 * kMiB), {.card_bytes = 1024 * kMiB}, {.host_wait_helps = true});
  const std::uint64_t block = scene.ask(64 * kMiB).address;
  const auto used = scene.fence.submit(kS);
  scene.free(block);
  SECTION("the work ends") {
    CHECK(scene.ask(64 * kMiB).ok());
    CHECK(scene.fence.is_complete(used));
    CHECK(scene.tape.stats().host_waits.get() >= 1);
  }
  SECTION("a wait that fails gives nobody the memory") {
    scene.fence.refuse(Time::kHostWait, 1, kFailed, kAlways);
    scene.fence.refuse(Time::kQuery, 1, kFailed, kAlways);
    const Grant grant = scene.ask(64 * kMiB);
    CHECK(grant.verdict == Verdict::kDriverError);
    CHECK(grant.code == kFailed);
  }
}

// The GPU is done after 2,000 looks at it; in 6 ms, with 20 us between two looks, there are at most 300.
TEST_CASE("a thread waits without an end for the record of its own free, but not for one made later") {
  Scene scene(options(64 * kMiB), {.card_bytes = 1024 * kMiB}, {.host_wait_helps = false, .looks_until_done = 2000});
  const std::uint64_t block = scene.ask(64 * kMiB).address;
  const auto used = scene.fence.submit(kS);
  SECTION("made at the free") {
    scene.tape.settle(scene.tape.free(block, kContextLine).record);
    CHECK(scene.fence.is_complete(used));
  }
  SECTION("made when a capture had ended: it covers this thread's later work, which may wait for the thread") {
    scene.fence.begin_capture(kT);
    const std::uint64_t record = scene.tape.free(block, kContextLine).record;
    scene.fence.end_captures();
    scene.tape.settle(record);
    CHECK(!scene.fence.is_complete(used));
  }
}

TEST_CASE("the verdict is capacity where live and request are more than the limit, else fragmentation") {
  Stranded scene(32 * kMiB);
  const HoleSummary summary = scene.tape.holes();
  CHECK(summary.bytes == 48 * kMiB);
  CHECK(summary.largest == 24 * kMiB);
  CHECK(scene.ask(24 * kMiB + 512).verdict == Verdict::kFragmentation);
  CHECK(scene.ask(48 * kMiB).verdict == Verdict::kFragmentation);
  CHECK(scene.ask(48 * kMiB + 512).verdict == Verdict::kCapacity);
  // Counted by who knows that nobody else served the request.
  CHECK(scene.tape.stats().oom_fragmentation.get() == 0);
  scene.tape.count_refusal(Verdict::kFragmentation);
  scene.tape.count_refusal(Verdict::kCapacity);
  CHECK(scene.tape.stats().oom_fragmentation.get() == 1);
  CHECK(scene.tape.stats().oom_capacity.get() == 1);
  CHECK(scene.ask(24 * kMiB).ok());
}

TEST_CASE("with the handles that are advised against fragmentation the same is served") {
  Stranded scene(2 * kMiB);
  CHECK(scene.ask(48 * kMiB + 512).verdict == Verdict::kCapacity);
  CHECK(scene.ask(48 * kMiB).ok());
}

TEST_CASE("what others hold of the card counts towards the limit") {
  TapeOptions chosen = options(1024 * kMiB);
  chosen.headroom = 16 * kMiB;
  Scene scene(chosen, {.card_bytes = 256 * kMiB});
  scene.backing.take_elsewhere(128 * kMiB);
  REQUIRE(scene.ask(64 * kMiB).ok());
  CHECK(scene.ask(64 * kMiB).verdict == Verdict::kCapacity);
  CHECK(scene.backing.card_memory().free >= 16 * kMiB);
  scene.backing.give_elsewhere(128 * kMiB);
  CHECK(scene.ask(64 * kMiB).ok());
}
