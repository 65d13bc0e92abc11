// The ways to hold memory, each by what it takes from the card for the same requests: reserved up front, grown exactly,
// by a step, by a factor; and in handles of which size.
#include <vector>

#include "pool/memory_backing.h"
#include "pool/memory_fence.h"
#include "pool/tape.h"
#include "tests/catch.h"

using namespace gpupool;

namespace {

using Memory = MemoryBacking::Operation;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr StreamRef kStream = 0x1000;

TapeOptions up_front(std::uint64_t size) {
  TapeOptions options;
  options.size = size;
  return options;
}

TapeOptions by_step(std::uint64_t step) {
  TapeOptions options;
  options.growth_bytes = step;
  return options;
}

TapeOptions by_factor(double factor) {
  TapeOptions options;
  options.growth_factor = factor;
  return options;
}

TapeOptions exactly() {
  TapeOptions options;
  options.exact_growth = true;
  return options;
}

struct Scene {
  explicit Scene(const TapeOptions& options) : tape(with_room(options), backing, fence) {
    while (tape.prefill(options.size) != 0) {
    }
  }
  ~Scene() {
    CHECK(tape.validate() == nullptr);
    CHECK(backing.broken_rule() == nullptr);
  }
  static TapeOptions with_room(TapeOptions options) {
    options.address_space = 256 * kGiB;
    return options;
  }
  std::uint64_t take(std::uint64_t bytes) {
    return tape.allocate({.bytes = bytes, .line = tape.line_of(kStream, false)}).address;
  }
  void give(std::uint64_t address) { tape.free(address, tape.line_of(kStream, false)); }
  std::uint64_t held() const { return tape.stats().reserved.current(); }
  std::uint64_t taken() const { return backing.calls(Memory::kCreate); }

  MemoryBacking backing{{.card_bytes = 32 * kGiB}};
  MemoryFence fence;
  Tape tape;
};

}  // namespace

TEST_CASE("what each strategy holds after the same requests") {
  struct Row {
    const char* name;
    TapeOptions options;
    std::uint64_t before, after_300, after_another_300, after_10;  // MiB, with 300, 300 and 10 MiB requested
    std::uint64_t growth_steps;
  };
  const Row rows[] = {
      {"reserved up front", up_front(kGiB), 1024, 1024, 1024, 1024, 0},
      {"reserved too small, then by a step", up_front(512 * kMiB), 512, 512, 600, 664, 2},
      {"exactly", exactly(), 0, 300, 600, 610, 3},
      {"by a step of 64 MiB", by_step(64 * kMiB), 0, 300, 600, 664, 3},
      {"by a step of 512 MiB", by_step(512 * kMiB), 0, 512, 1024, 1024, 2},
      {"by a factor of 1.5", by_factor(0.5), 0, 300, 600, 900, 3},
      {"by a factor of 2", by_factor(1.0), 0, 300, 600, 1200, 3},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    Scene scene(row.options);
    CHECK(scene.held() == row.before * kMiB);
    REQUIRE(scene.take(300 * kMiB) != 0);
    CHECK(scene.held() == row.after_300 * kMiB);
    REQUIRE(scene.take(300 * kMiB) != 0);
    CHECK(scene.held() == row.after_another_300 * kMiB);
    REQUIRE(scene.take(10 * kMiB) != 0);
    CHECK(scene.held() == row.after_10 * kMiB);
    CHECK(scene.tape.stats().growth_steps.get() == row.growth_steps);
  }
}

TEST_CASE("a pool that grows takes few handles for large blocks and small ones for small blocks") {
  Scene scene(exactly());
  REQUIRE(scene.take(8 * kGiB) != 0);
  CHECK(scene.taken() <= 2 * 8 * kGiB / (8 * kMiB));
  CHECK(scene.taken() >= 8 * kGiB / (128 * kMiB));
  const std::uint64_t before = scene.taken();
  REQUIRE(scene.take(8 * kMiB) != 0);
  CHECK(scene.taken() - before <= 4);
  for (int i = 0; i < 64; ++i) REQUIRE(scene.take(2 * kMiB) != 0);
  CHECK(scene.taken() - before <= 68);
}

TEST_CASE("a pool reserved up front takes 32 to 128 MiB at a time; a size that is chosen holds for both") {
  CHECK(Scene(up_front(8 * kGiB)).taken() == 8 * kGiB / (32 * kMiB));
  TapeOptions chosen = up_front(8 * kGiB);
  chosen.handle = 16 * kMiB;
  CHECK(Scene(chosen).taken() == 8 * kGiB / (16 * kMiB));
  chosen = exactly();
  chosen.handle = 64 * kMiB;
  Scene grown(chosen);
  REQUIRE(grown.take(kGiB) != 0);
  CHECK(grown.taken() == kGiB / (64 * kMiB));
}

TEST_CASE("steps of one shape cost the driver nothing after the first, whatever the strategy") {
  for (const TapeOptions& options : {up_front(4 * kGiB), exactly(), by_step(64 * kMiB), by_factor(0.5)}) {
    Scene scene(options);
    std::uint64_t after_first = 0;
    for (int step = 0; step < 6; ++step) {
      std::vector<std::uint64_t> blocks;
      for (std::uint64_t i = 1; i <= 60; ++i) {
        blocks.push_back(scene.take(i * 37 % 60 * kMiB + i * 4096));
        if (i % 3 == 0) {
          scene.give(blocks[i / 3]);
          blocks[i / 3] = 0;
        }
      }
      for (const std::uint64_t block : blocks) {
        if (block != 0) scene.give(block);
      }
      if (step == 0) after_first = scene.taken() + scene.backing.calls(Memory::kMap);
    }
    CHECK(scene.taken() + scene.backing.calls(Memory::kMap) <= after_first + after_first / 10);
  }
}
