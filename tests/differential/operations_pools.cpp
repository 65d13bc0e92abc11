// Memory pools: made, set, asked, trimmed, made current, destroyed with blocks alive.
#include <algorithm>

#include "tests/differential/operations.h"

namespace differential {
namespace {

constexpr unsigned kMostPools = 4;

constexpr CUmemPool_attribute kFlags[] = {CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES,
                                          CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
                                          CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES};

std::string name(const Pool& pool) { return "p" + std::to_string(pool.number); }

void destroy_at(World& world, std::size_t index) {
  const Pool pool = world.pools[index];
  world.pools.erase(world.pools.begin() + static_cast<std::ptrdiff_t>(index));
  if (pool.number == world.current_pool) world.current_pool = 0;
  world.say("destroy " + name(pool), driver().cuMemPoolDestroy_(pool.handle));
}

}  // namespace

void meet_default_pool(World& world) {
  Pool pool;
  pool.used_is_exact = world.default_pool_is_exact;
  const int result = driver().cuDeviceGetDefaultMemPool_(&pool.handle, 0);
  world.say("default pool", result);
  world.pools.push_back(pool);
}

void create_pool(World& world) {
  if (world.pools.size() >= kMostPools) return;
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  Pool pool;
  const int result = driver().cuMemPoolCreate_(&pool.handle, &props);
  pool.number = world.next_pool++;
  world.say("pool " + name(pool), result);
  if (result == 0) world.pools.push_back(pool);
}

// Neither current nor with blocks alive, and all its frees done.
void destroy_pool(World& world) {
  if (world.pools.size() < 2) return;
  const std::size_t index = 1 + world.below(world.pools.size() - 1);
  const int number = world.pools[index].number;
  const auto is_in_it = [number](const Block& block) { return block.pool == number; };
  if (number == world.current_pool || std::any_of(world.blocks.begin(), world.blocks.end(), is_in_it)) return;
  world.say("wait before a pool goes", driver().cuCtxSynchronize_());
  destroy_at(world, index);
}

void destroy_pool_in_use(World& world) {
  if (world.pools.size() > 1) destroy_at(world, 1 + world.below(world.pools.size() - 1));
}

void set_current_pool(World& world) {
  const Pool& pool = world.any_pool();
  world.current_pool = pool.number;
  world.say("current is " + name(pool), driver().cuDeviceSetMemPool_(0, pool.handle));
}

// The same by place and kind of memory, as CUDA 13 has it.
void use_pools_by_location(World& world) {
  CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemoryPool told = nullptr;
  switch (world.below(3)) {
    case 0: {
      const int result = driver().cuMemGetDefaultMemPool_(&told, &here, CU_MEM_ALLOCATION_TYPE_PINNED);
      return world.say("default pool here", result, world.name_of(told));
    }
    case 1: {
      const int result = driver().cuMemGetMemPool_(&told, &here, CU_MEM_ALLOCATION_TYPE_PINNED);
      return world.say("pool here", result, world.name_of(told));
    }
    default: {
      const Pool& pool = world.any_pool();
      const int result = driver().cuMemSetMemPool_(&here, CU_MEM_ALLOCATION_TYPE_PINNED, pool.handle);
      if (result == 0) world.current_pool = pool.number;
      return world.say("here it is " + name(pool), result);
    }
  }
}

void trim_pool(World& world) {
  const Pool& pool = world.any_pool();
  world.say("trim " + name(pool), driver().cuMemPoolTrimTo_(pool.handle, world.below(1 << 26)));
}

void destroy_default_pool(World& world) {
  world.say("destroy the default pool", driver().cuMemPoolDestroy_(world.pools.front().handle));
}

void set_pool(World& world) {
  const Pool& pool = world.any_pool();
  const CUmemPool_attribute flag = kFlags[world.below(3)];
  int on = static_cast<int>(world.below(2));
  cuuint64_t bytes = world.one_in(2) ? 0 : world.below(1 << 28);
  const auto attribute = [&](const char* what, CUmemPool_attribute which, void* value) {
    world.say(std::string(what) + " of " + name(pool), driver().cuMemPoolSetAttribute_(pool.handle, which, value));
  };
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  access.flags = world.one_in(2) ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_READ;
  switch (world.below(6)) {
    case 5:
      if (access.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        world.say("set access of " + name(pool), driver().cuMemPoolSetAccess_(pool.handle, &access, 1));
      return;
    case 0:
      return attribute("set a flag", flag, &on);
    case 1:
      return attribute("set the threshold", CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes);
    case 2:
      return attribute("set used high", CU_MEMPOOL_ATTR_USED_MEM_HIGH, &bytes);
    case 3:
      return attribute("set reserved high", CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &bytes);
    default:
      return attribute("set used", CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &bytes);
  }
}

void ask_pools(World& world) {
  CUmemoryPool current = nullptr;
  const int asked = driver().cuDeviceGetMemPool_(&current, 0);
  world.say("current pool", asked, world.name_of(current));
  const Pool& pool = world.any_pool();
  const auto ask = [&](const char* what, CUmemPool_attribute which, auto show) {
    cuuint64_t value = 0;
    const int result = driver().cuMemPoolGetAttribute_(pool.handle, which, &value);
    world.say(std::string(what) + " of " + name(pool), result, show(std::to_string(value)));
  };
  const auto as_it_is = [](const std::string& value) { return value; };
  const auto used = [&](const std::string& value) {
    return pool.used_is_exact ? value : World::unless(Exception::pool_used_after_plain_free, value);
  };
  const auto reserved = [](const std::string& value) { return World::unless(Exception::pool_reserved, value); };
  CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  switch (world.below(7)) {
    case 6: {
      const int told = driver().cuMemPoolGetAccess_(&access, pool.handle, &here);
      return world.say("access of " + name(pool), told, std::to_string(access));
    }
    case 0:
      return ask("flag", kFlags[world.below(3)], as_it_is);
    case 1:
      return ask("threshold", CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, as_it_is);
    case 2:
      world.say("wait", driver().cuCtxSynchronize_());  // frees that are on their way may count
      return ask("used", CU_MEMPOOL_ATTR_USED_MEM_CURRENT, used);
    case 3:
      return ask("used high", CU_MEMPOOL_ATTR_USED_MEM_HIGH, used);
    case 4:
      return ask("reserved", CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, reserved);
    default:
      return ask("reserved high", CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, reserved);
  }
}

// Attributes that are none or cannot be set, pools and places that are none.
void misuse_pool(World& world) {
  constexpr auto kNoAttribute = static_cast<CUmemPool_attribute>(15);
  const Pool& pool = world.any_pool();
  const std::string of = " of " + name(pool);
  cuuint64_t value = world.below(1 << 20);
  CUmemoryPool none = nullptr;
  CUmemPoolProps props{};
  CUmemAccessDesc access{};
  CUmemLocation nowhere{CU_MEM_LOCATION_TYPE_DEVICE, {77}};
  CUmemAccess_flags flags{};
  switch (world.below(12)) {
    case 0:
      return world.say("get no attribute" + of, driver().cuMemPoolGetAttribute_(pool.handle, kNoAttribute, &value));
    case 1:
      return world.say("set no attribute" + of, driver().cuMemPoolSetAttribute_(pool.handle, kNoAttribute, &value));
    case 2:
      return world.say("set reserved" + of,
                       driver().cuMemPoolSetAttribute_(pool.handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    case 3:
      return world.say("get to nowhere" + of,
                       driver().cuMemPoolGetAttribute_(pool.handle, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, nullptr));
    case 4:
      return world.say("set from nowhere" + of,
                       driver().cuMemPoolSetAttribute_(pool.handle, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, nullptr));
    case 5:
      return world.say("trim no pool", driver().cuMemPoolTrimTo_(nullptr, 0));
    case 6:
      return world.say("destroy no pool", driver().cuMemPoolDestroy_(nullptr));
    case 7:
      return world.say("pool of nothing", driver().cuMemPoolCreate_(&none, &props));
    case 8:
      props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
      props.location = nowhere;
      return world.say("pool nowhere", driver().cuMemPoolCreate_(&none, &props));
    case 9:
      access.location = nowhere;
      access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      return world.say("access from nowhere" + of, driver().cuMemPoolSetAccess_(pool.handle, &access, 1));
    case 10:
      return world.say("ask access from nowhere" + of, driver().cuMemPoolGetAccess_(&flags, pool.handle, &nowhere));
    default:
      return world.say("no pool is current", driver().cuDeviceSetMemPool_(0, nullptr));
  }
}

}  // namespace differential
