// The accounting of the program's memory pools, against the sequence that the driver's own default pool shows.
#include "preload/memory_pools.h"

#include <thread>
#include <vector>

#include "tests/catch.h"

using namespace gpupool;

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

bool serve(MemoryPool& pool, std::uint64_t bytes) {
  if (!pool.take(bytes)) return false;
  pool.served();
  return true;
}

}  // namespace

TEST_CASE("used counts requested bytes, reserved counts steps and follows the threshold") {
  MemoryPool pool(1, 0, PoolOrigin::kProgram, 0, 1);
  CHECK(serve(pool, 1000));
  CHECK(pool.reserved() == 32 * kMiB);
  CHECK(serve(pool, 40 * kMiB));
  CHECK(pool.used() == 1000 + 40 * kMiB);
  CHECK(pool.reserved() == 64 * kMiB);
  pool.give_back(40 * kMiB);
  CHECK(pool.reserved() == 32 * kMiB);
  pool.give_back(1000);
  CHECK(pool.reserved() == 0);
  CHECK(pool.used_high() == 1000 + 40 * kMiB);
  CHECK(pool.reserved_high() == 64 * kMiB);
  pool.reset_used_high();
  pool.reset_reserved_high();
  CHECK(pool.used_high() == 0);
  CHECK(pool.reserved_high() == 0);
  pool.set_release_threshold(1024 * kMiB);
  CHECK(serve(pool, 100 * kMiB));
  pool.give_back(100 * kMiB);
  CHECK(pool.reserved() == 128 * kMiB);
  pool.trim(0);
  CHECK(pool.reserved() == 0);
  CHECK(pool.reserved_high() == 128 * kMiB);
}

TEST_CASE("a pool's own limit refuses without counting") {
  MemoryPool pool(1, 0, PoolOrigin::kProgram, 32 * kMiB, 1);
  CHECK(serve(pool, 32 * kMiB));
  CHECK_FALSE(serve(pool, 1));
  CHECK(pool.used() == 32 * kMiB);
}

TEST_CASE("a handle names the pool that lives now; blocks of a destroyed one still find theirs") {
  auto pools = std::make_unique<MemoryPools>();
  MemoryPool* first = pools->adopt(77, 0, PoolOrigin::kProgram, 0);
  REQUIRE(first);
  CHECK(pools->adopt(77, 0, PoolOrigin::kProgram, 0) == first);
  CHECK(pools->find(77) == first);
  pools->destroy(*first);
  CHECK(pools->find(77) == nullptr);
  MemoryPool* second = pools->adopt(77, 0, PoolOrigin::kProgram, 0);
  CHECK(second != first);
  CHECK(pools->find(77) == second);
  CHECK(pools->of_tag(first->tag()) == first);
  CHECK(pools->of_tag(MemoryPools::kPlain) == nullptr);
}

TEST_CASE("the current pool of a device is unknown until set, and again when pools change") {
  auto pools = std::make_unique<MemoryPools>();
  MemoryPool* found = nullptr;
  CHECK(pools->current(0, found) == MemoryPools::Current::kUnknown);
  MemoryPool* pool = pools->adopt(5, 0, PoolOrigin::kProgram, 0);
  pools->set_current(0, pool);
  CHECK(pools->current(0, found) == MemoryPools::Current::kOurs);
  CHECK(found == pool);
  pools->set_current(0, nullptr);
  CHECK(pools->current(0, found) == MemoryPools::Current::kForeign);
  pools->forget_current();
  CHECK(pools->current(0, found) == MemoryPools::Current::kUnknown);
}

TEST_CASE("a block whose tape has gone counts in its pool until it is freed, once") {
  const auto pools = std::make_unique<MemoryPools>();
  MemoryPool* pool = pools->adopt(1, 0, PoolOrigin::kDevice, 0);
  CHECK(serve(*pool, 1000));
  CHECK_FALSE(pools->free_left_behind(0x1000));
  pools->leave_behind(0x1000, pool->tag(), 1000);
  CHECK(pool->used() == 1000);
  CHECK(pools->free_left_behind(0x1000));
  CHECK(pool->used() == 0);
  CHECK_FALSE(pools->free_left_behind(0x1000));
}

TEST_CASE("tapes count in the pools without a limit, and the driver's share is added") {
  const auto pools = std::make_unique<MemoryPools>();
  MemoryPool* pool = pools->adopt(1, 0, PoolOrigin::kDevice, 0);
  MemoryPool* limited = pools->adopt(2, 0, PoolOrigin::kProgram, 32 * kMiB);
  CHECK(pools->accounts().of(MemoryPools::kPlain) == nullptr);
  CHECK(pools->accounts().of(limited->tag()) == nullptr);
  Account* account = pools->accounts().of(pool->tag());
  REQUIRE(account != nullptr);
  account->add(1000, Account::Writers::kOne);
  pool->passed(40 * kMiB);
  pool->served();
  CHECK(pool->used() == 1000 + 40 * kMiB);
  CHECK(pool->used_high() == 1000 + 40 * kMiB);
  pool->give_back(40 * kMiB);
  account->subtract(1000, Account::Writers::kOne);
  CHECK(pool->used() == 0);
  limited->passed(1000);  // was taken before
  CHECK(limited->used() == 0);
}

TEST_CASE("what the driver serves and nobody will see freed is not counted") {
  MemoryPool open(1, 0, PoolOrigin::kDevice, 0, 1);
  open.lost_sight(1000);
  CHECK(open.used() == 0);
  MemoryPool limited(2, 0, PoolOrigin::kProgram, 32 * kMiB, 2);
  CHECK(serve(limited, 20 * kMiB));
  limited.lost_sight(20 * kMiB);
  CHECK(limited.used() == 0);
  CHECK(serve(limited, 32 * kMiB));
}

TEST_CASE("an account's sum was true at one moment, whoever adds beside the tape") {
  MemoryPool pool(1, 0, PoolOrigin::kDevice, 0, 1);
  constexpr unsigned kOthers = 3;
  constexpr unsigned kRounds = 20000;
  std::vector<std::thread> threads;
  const auto work = [&](Account::Writers writers) {
    for (unsigned i = 0; i < kRounds; ++i) {
      pool.account().add(512, writers);
      pool.served();
      pool.account().subtract(512, writers);
    }
  };
  for (unsigned i = 0; i < kOthers; ++i) threads.emplace_back(work, Account::Writers::kMany);
  work(Account::Writers::kOne);
  for (std::thread& thread : threads) thread.join();
  CHECK(pool.used() == 0);
  CHECK(pool.used_high() >= 512);
  CHECK(pool.used_high() <= 512 * (kOthers + 1));
}

TEST_CASE("what is given back without having been served leaves no high mark") {
  MemoryPool pool(1, 0, PoolOrigin::kProgram, 0, 1);
  CHECK(serve(pool, 1000));
  CHECK(pool.take(100 * kMiB));
  pool.give_back(100 * kMiB);
  CHECK(pool.used_high() == 1000);
  CHECK(pool.reserved_high() == 32 * kMiB);
}
