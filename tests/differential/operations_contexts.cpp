// Contexts: a second one that goes with its memory, a reset of the device, a thread that has none.
#include <thread>

#include "tests/differential/operations.h"

namespace differential {
namespace {

CUresult create(CUcontext* context) {
#if CUDA_VERSION >= 13000
  return driver().cuCtxCreate_(context, nullptr, 0, 0);
#else
  return driver().cuCtxCreate_(context, 0, 0);
#endif
}

// Before the primary context ends: stream-ordered blocks are freed, but for the one at `kept`, and the program's pools.
void leave_device(World& world, CUdeviceptr kept) {
  world.say("wait before the reset", driver().cuCtxSynchronize_());
  for (std::size_t i = world.blocks.size(); i-- > 0;) {
    if (world.blocks[i].kind != Kind::kOrdered || world.blocks[i].address == kept) continue;
    const CUdeviceptr address = world.blocks[i].address;
    world.forget(world.blocks[i]);
    world.say("free before the reset", world.api().free_async(address, nullptr));
  }
  world.say("default pool is current", driver().cuDeviceSetMemPool_(0, world.pools.front().handle));
  world.say("wait before the reset", driver().cuCtxSynchronize_());
  world.current_pool = 0;
  while (world.pools.size() > 1) {
    world.say("destroy a pool", driver().cuMemPoolDestroy_(world.pools.back().handle));
    world.pools.pop_back();
  }
  world.default_pool_is_exact = world.pools.front().used_is_exact;
}

void enter_device(World& world) {
  world.forget_everything();
  world.say("start", world.api().start());
  world.others_must_start = true;
  driver().cuCtxGetCurrent_(&world.primary);
}

}  // namespace

void use_second_context(World& world) {
  CUcontext second = nullptr;
  CUcontext told = nullptr;
  CUdeviceptr first = 0;
  CUdeviceptr kept = 0;
  CUdeviceptr ordered = 0;
  world.say("context", create(&second));
  if (!second) return;
  world.say("alloc in it", driver().cuMemAlloc_(&first, 1 + world.below(1 << 20)));
  world.say("alloc in it", driver().cuMemAlloc_(&kept, 1 + world.below(1 << 20)));
  world.say("write in it", driver().cuMemsetD8_(kept, 5, 1));
  const int asked = driver().cuPointerGetAttribute_(&told, CU_POINTER_ATTRIBUTE_CONTEXT, kept);
  world.say("its context", asked, told == second ? "its own" : "another");
  // A block of the primary context, by its address.
  if (Block* block = world.any_block(); block && block->kind == Kind::kPlain) {
    const CUdeviceptr address = block->address;
    const std::string name = text(*block);
    world.forget(*block);
    world.say("free " + name + " from it", driver().cuMemFree_(address));
  }
  world.say("free in it", driver().cuMemFree_(first));
  world.say("alloc ordered in it", driver().cuMemAllocAsync_(&ordered, 1 + world.below(1 << 20), nullptr));
  world.say("free ordered in it", driver().cuMemFreeAsync_(ordered, nullptr));
  world.say("wait for all of it", driver().cuCtxSynchronize_());
  world.say("context destroyed", driver().cuCtxDestroy_(second));
  world.say("primary", driver().cuCtxSetCurrent_(world.primary));
  world.say("free of what went with it", driver().cuMemFree_(kept));
}

// Memory of the device's pool is the device's, not the context's whose stream asked for it.
void outlive_context(World& world) {
  CUcontext second = nullptr;
  CUdeviceptr ordered = 0;
  world.say("context", create(&second));
  if (!second) return;
  world.say("alloc ordered in it", driver().cuMemAllocAsync_(&ordered, 1 + world.below(1 << 20), nullptr));
  world.say("wait for all of it", driver().cuCtxSynchronize_());
  world.say("context destroyed", driver().cuCtxDestroy_(second));
  world.say("primary", driver().cuCtxSetCurrent_(world.primary));
  world.say("free of what stayed", driver().cuMemFreeAsync_(ordered, nullptr));
}

// Plain blocks go with the context, stream-ordered ones stay until they are freed, pools stay as they are.
void reset_device(World& world) {
  CUdeviceptr plain = 0;
  CUdeviceptr ordered = 0;
  unsigned type = 0;
  for (const Block& block : world.blocks) {
    if (block.kind == Kind::kPlain) plain = block.address;
    if (block.kind == Kind::kOrdered && block.pool == 0) ordered = block.address;
  }
  leave_device(world, ordered);
  world.say("reset", world.api().reset());
  enter_device(world);
  if (plain) {
    world.say("free of a stale block", world.api().free(plain));
    world.say("attribute of a stale block",
              driver().cuPointerGetAttribute_(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, plain));
  }
  if (ordered) {
    world.say("free of an ordered block that stayed", world.api().free_async(ordered, nullptr));
    world.say("again", world.api().free_async(ordered, nullptr));
  }
  meet_default_pool(world);
}

void act_without_context(World& world) {
  const Block* known = world.any_block();
  Block* freed = world.one_in(2) ? world.any_block() : nullptr;
  CUdeviceptr address = 0;
  std::string name;
  const CUdeviceptr asked_for = known ? known->address : 0;
  if (freed && freed->kind == Kind::kPlain) {
    address = freed->address;
    name = text(*freed);
    world.forget(*freed);
  }
  std::thread([&] {
    CUdeviceptr block = 0;
    CUdeviceptr base = 0;
    std::size_t size = 0;
    CUcontext current = nullptr;
    const int asked = driver().cuCtxGetCurrent_(&current);
    world.say("lone thread: context", asked, current ? "one" : "none");
    world.say("lone thread: alloc", driver().cuMemAlloc_(&block, 100));
    world.say("lone thread: free null", driver().cuMemFree_(0));
    world.say("lone thread: free unknown", driver().cuMemFree_(0x700000000000));
    world.say("lone thread: free memory", driver().cuMemGetInfo_(&size, &size));
    if (asked_for) world.say("lone thread: range", driver().cuMemGetAddressRange_(&base, &size, asked_for));
    if (address) world.say("lone thread: free " + name, driver().cuMemFree_(address));
  }).join();
}

void act_ordered_without_context(World& world) {
  const CUstream stream = world.streams.empty() ? nullptr : world.streams.front();
  std::thread([&] {
    CUdeviceptr block = 0;
    world.say("lone thread: alloc ordered", driver().cuMemAllocAsync_(&block, 512, nullptr));
    world.say("lone thread: free ordered null", driver().cuMemFreeAsync_(0, nullptr));
    if (!stream) return;
    const int result = driver().cuMemAllocAsync_(&block, 100, stream);
    world.say("lone thread: alloc on a stream", result);
    if (result == 0) world.say("lone thread: free on a stream", driver().cuMemFreeAsync_(block, stream));
  }).join();
}

void free_ordered_without_context(World& world) {
  const Block* block = world.any_block();
  if (!block || block->kind == Kind::kManaged) return;
  std::thread([&] {
    for (const CUstream stream : {CUstream{}, CU_STREAM_PER_THREAD}) {
      const int result = driver().cuMemFreeAsync_(block->address, stream);
      world.say("lone thread: free of " + text(*block) + " on a default stream", result);
    }
  }).join();
}

// As older programs make them.
void use_older_contexts(World& world) {
  CUcontext context = nullptr;
  CUdeviceptr block = 0;
  int made = -1;
  switch (world.below(3)) {
    case 0:
      if (driver().older_cuCtxCreate.function) made = driver().older_cuCtxCreate(&context, 0, 0);
      break;
    case 1:
      if (driver().older_cuCtxCreate_v2.function) made = driver().older_cuCtxCreate_v2(&context, 0, 0);
      break;
    default:
      if (driver().older_cuCtxCreate_v3.function) made = driver().older_cuCtxCreate_v3(&context, nullptr, 0, 0, 0);
  }
  world.say("older context", made);
  if (!context) return;
  world.say("alloc in it", driver().cuMemAlloc_(&block, 1 + world.below(1 << 20)));
  world.say("write in it", driver().cuMemsetD8_(block, 3, 1));
  world.say("context destroyed", driver().cuCtxDestroy_(context));
  world.say("primary", driver().cuCtxSetCurrent_(world.primary));
  world.say("free of what went with it", driver().cuMemFree_(block));
}

// It ends with the last detach.
void attach_context(World& world) {
  CUcontext second = nullptr;
  CUcontext attached = nullptr;
  CUdeviceptr block = 0;
  world.say("context", create(&second));
  if (!second) return;
  world.say("alloc in it", driver().cuMemAlloc_(&block, 1 + world.below(1 << 20)));
  const int result = driver().cuCtxAttach_(&attached, 0);
  world.say("attach", result, attached == second ? "to it" : "to another");
  world.say("detach", driver().cuCtxDetach_(second));
  world.say("write in it still", driver().cuMemsetD8_(block, 9, 1));
  if (world.one_in(2)) world.say("free in it", driver().cuMemFree_(block));
  world.say("last detach", driver().cuCtxDetach_(second));
  world.say("primary", driver().cuCtxSetCurrent_(world.primary));
  world.say("free of what went with it", driver().cuMemFree_(block));
}

void set_limits(World& world) {
  constexpr CUlimit kLimits[] = {CU_LIMIT_STACK_SIZE, CU_LIMIT_PRINTF_FIFO_SIZE, CU_LIMIT_MALLOC_HEAP_SIZE};
  const std::uint64_t choice = world.below(std::size(kLimits));
  world.say("limit " + std::to_string(choice), driver().cuCtxSetLimit_(kLimits[choice], 1024 << world.below(4)));
}

// One more user of the primary context, and one less: nothing happens.
void release_again(World& world) {
  CUcontext again = nullptr;
  const int retained = driver().cuDevicePrimaryCtxRetain_(&again, 0);
  world.say("retain", retained, again == world.primary ? "the same" : "ANOTHER");
  if (retained == 0) world.say("release", driver().cuDevicePrimaryCtxRelease_(0));
}

// The last user of the primary context goes, and it with its plain memory. The runtime holds one that it keeps.
void release_device(World& world) {
  CUdeviceptr plain = 0;
  for (const Block& block : world.blocks)
    if (block.kind == Kind::kPlain) plain = block.address;
  if (!world.api().may_release()) return;
  leave_device(world, 0);
  world.say("last release", world.api().release_all());
  enter_device(world);
  if (plain) world.say("free of a stale block", world.api().free(plain));
  meet_default_pool(world);
}

}  // namespace differential
