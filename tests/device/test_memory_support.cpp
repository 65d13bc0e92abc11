// The books of pool/memory_backing.h and pool/memory_fence.h: a test that leans on them must be able to trust their
// "no".
#include <string>

#include "pool/memory_backing.h"
#include "pool/memory_fence.h"
#include "tests/catch.h"

namespace gpupool::test {
namespace {

constexpr std::uint64_t kUnit = std::uint64_t{2} << 20;
using Operation = MemoryBacking::Operation;

}  // namespace

TEST_CASE("a broken rule is refused, and the first one is remembered", "[memory_backing]") {
  MemoryBacking backing;
  std::uint64_t range = 0;
  Handle handle;
  Handle other;
  REQUIRE(backing.reserve(4 * kUnit, range).ok());
  REQUIRE(backing.create(2 * kUnit, Location::kDevice, handle).ok());
  REQUIRE(backing.create(2 * kUnit, Location::kDevice, other).ok());
  REQUIRE(backing.map(handle, range + kUnit).ok());
  CHECK(backing.broken_rule() == nullptr);
  const auto is_broken = [&](const char* rule) {
    return backing.broken_rule() && std::string(backing.broken_rule()) == rule;
  };

  SECTION("half a handle") {
    const Handle half{handle.id, kUnit, 0, Location::kDevice};
    CHECK(backing.unmap(handle, range + 2 * kUnit).code == MemoryBacking::kBrokenRule);
    CHECK(is_broken("unmap: the handle is not mapped there"));
    CHECK_FALSE(backing.map(half, range).ok());
    CHECK(is_broken("unmap: the handle is not mapped there"));
  }
  SECTION("twice in one place") {
    CHECK_FALSE(backing.map(other, range).ok());
    CHECK(is_broken("map: something is mapped there already"));
  }
  SECTION("one handle in two places") {
    CHECK_FALSE(backing.map(handle, range).ok());
    CHECK(is_broken("map: the handle is mapped already"));
  }
  SECTION("beyond the reservation") {
    CHECK_FALSE(backing.map(other, range + 3 * kUnit).ok());
    CHECK(is_broken("map: not inside a reservation"));
  }
  SECTION("between two units") {
    CHECK_FALSE(backing.map(other, range + 512).ok());
    CHECK(is_broken("map: not at a whole unit"));
  }
  SECTION("destroyed while mapped") {
    backing.destroy(handle);
    CHECK(is_broken("destroy: the handle is mapped"));
    CHECK(backing.usable(range + kUnit, 2 * kUnit));
  }
  SECTION("destroyed twice") {
    backing.destroy(other);
    backing.destroy(other);
    CHECK(is_broken("destroy: no such handle"));
  }
  SECTION("addresses given back under a mapping") {
    backing.unreserve(range, 4 * kUnit);
    CHECK(is_broken("unreserve: something is still mapped there"));
  }
  SECTION("a size that is no unit") {
    CHECK_FALSE(backing.create(kUnit + 512, Location::kDevice, other).ok());
    CHECK(is_broken("create: not whole units"));
  }
}

TEST_CASE("the memory backing counts, refuses to order, and shares its card", "[memory_backing]") {
  MemoryBacking backing({.card_bytes = 8 * kUnit});
  Handle handle;
  backing.refuse(Operation::kCreate, 2, 46);
  CHECK(backing.create(kUnit, Location::kDevice, handle).ok());
  CHECK(backing.create(kUnit, Location::kDevice, handle).code == 46);
  CHECK(backing.create(kUnit, Location::kDevice, handle).ok());
  CHECK(backing.calls(Operation::kCreate) == 3);
  CHECK(backing.handles() == 2);
  backing.take_elsewhere(5 * kUnit);
  CHECK(backing.card_memory().free == kUnit);
  CHECK(backing.card_memory().total == 8 * kUnit);
  CHECK(backing.create(2 * kUnit, Location::kDevice, handle).code == MemoryBacking::kCardFull);
  backing.give_elsewhere(kUnit);
  CHECK(backing.create(2 * kUnit, Location::kDevice, handle).ok());
  CHECK(backing.create(2 * kUnit, Location::kHost, handle).ok());
  CHECK(backing.card_memory().free == 0);
  CHECK(backing.broken_rule() == nullptr);
}

TEST_CASE("a new owner is safe behind a wait or behind completion, and only then", "[memory_fence]") {
  MemoryFence fence;
  const StreamRef user = 10;
  const StreamRef owner = 20;
  fence.submit(user);
  const MemoryFence::Point last_use = fence.submit(user);
  CHECK(fence.safe_after(user, last_use));
  CHECK_FALSE(fence.safe_after(owner, last_use));

  SECTION("a wait") {
    const EventId event = fence.make_event();
    REQUIRE(fence.record(user, event) == RecordResult::kRecorded);
    const MemoryFence::Point after = fence.submit(user);
    REQUIRE(fence.wait(owner, event));
    CHECK(fence.ordered_behind(owner, last_use));
    CHECK(fence.safe_after(owner, last_use));
    CHECK_FALSE(fence.ordered_behind(owner, after));
  }
  SECTION("completion") {
    fence.complete(last_use);
    CHECK(fence.is_complete(last_use));
    CHECK(fence.safe_after(owner, last_use));
    CHECK_FALSE(fence.ordered_behind(owner, last_use));
  }
  SECTION("a wait for too early a record") {
    const EventId event = fence.make_event();
    REQUIRE(fence.record(user, event) == RecordResult::kRecorded);
    const MemoryFence::Point later = fence.submit(user);
    REQUIRE(fence.wait(owner, event));
    CHECK_FALSE(fence.safe_after(owner, later));
  }
}

TEST_CASE("the memory fence refuses to order, and plays an old driver", "[memory_fence]") {
  MemoryFence fence({.context_events = false, .max_events = 1});
  const EventId event = fence.make_event();
  CHECK(fence.make_event() == kNoEvent);
  const MemoryFence::Point work = fence.submit(1);
  fence.refuse(MemoryFence::Operation::kRecord, 1, 719);
  CHECK(fence.record(kWholeContext, event) == RecordResult::kFailed);
  CHECK(fence.take_error() == 719);
  CHECK(fence.take_error() == 0);
  CHECK_FALSE(fence.is_complete(work));
  CHECK(fence.record(kWholeContext, event) == RecordResult::kComplete);
  CHECK(fence.is_complete(work));
  CHECK(fence.calls(MemoryFence::Operation::kRecord) == 2);
}

}  // namespace gpupool::test
