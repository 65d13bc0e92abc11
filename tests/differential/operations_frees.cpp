// Frees: in order and at once, twice, of what is none. A block that is freed twice in a row is freed before anything
// else could get its address.
#include "tests/differential/operations.h"

namespace differential {
namespace {

struct Freed {
  CUdeviceptr address;
  std::string name;
};

Freed forget(World& world, Block& block) {
  const Freed freed{block.address, text(block)};
  world.forget(block);
  return freed;
}

// Nothing waits for work on a stream-ordered block when it is freed plainly; with other blocks the driver does.
void wait_for(const Block& block) {
  if (block.kind == Kind::kOrdered) driver().cuEventSynchronize_(block.last);
}

Freed free_at_once(World& world, Block& block) {
  for (Pool& pool : world.pools) {
    if (pool.number == block.pool) pool.used_is_exact = false;
  }
  const Freed freed = forget(world, block);
  world.say("free " + freed.name, world.api().free(freed.address));
  return freed;
}

// On a stream, behind all work on the block. Managed memory cannot be freed so.
Freed free_on(World& world, Block& block, CUstream stream) {
  world.before(block, stream);
  const Freed freed = forget(world, block);
  world.say("free ordered " + freed.name, world.api().free_async(freed.address, stream));
  return freed;
}

void again_at_once(World& world, const Freed& freed) {
  world.say("free " + freed.name + " again", world.api().free(freed.address));
}

void again_on(World& world, const Freed& freed, CUstream stream) {
  world.say("free ordered " + freed.name + " again", world.api().free_async(freed.address, stream));
}

bool is(const Block* block, Kind kind) { return block && block->kind == kind; }

}  // namespace

void free_plainly(World& world) {
  Block* block = world.any_block();
  if (!block) return;
  wait_for(*block);
  free_at_once(world, *block);
}

void free_ordered(World& world) {
  Block* block = world.any_block();
  if (block && block->kind != Kind::kManaged) free_on(world, *block, world.any_stream());
}

void free_in_flight(World& world) {
  if (Block* block = world.any_block(); is(block, Kind::kOrdered)) free_at_once(world, *block);
}

void free_plain_twice(World& world) {
  if (Block* block = world.any_block(); is(block, Kind::kPlain)) again_at_once(world, free_at_once(world, *block));
}

void free_ordered_twice(World& world) {
  Block* block = world.any_block();
  const CUstream stream = world.any_stream();
  if (is(block, Kind::kOrdered)) again_on(world, free_on(world, *block, stream), stream);
}

// By the free that is not the block's own kind's.
void free_ordered_block_plainly_twice(World& world) {
  Block* block = world.any_block();
  if (!is(block, Kind::kOrdered)) return;
  wait_for(*block);
  again_at_once(world, free_at_once(world, *block));
}

void free_plain_block_on_a_stream_twice(World& world) {
  Block* block = world.any_block();
  const CUstream stream = world.any_stream();
  if (is(block, Kind::kPlain)) again_on(world, free_on(world, *block, stream), stream);
}

void free_nothing(World& world) {
  if (world.one_in(2)) return world.say("free null", world.api().free(0));
  world.say("free ordered null", world.api().free_async(0, world.any_stream()));
}

void free_unknown(World& world) {
  int local = 0;
  if (world.one_in(2)) return world.say("free 0x1000", world.api().free(0x1000));
  world.say("free of the stack", world.api().free(reinterpret_cast<CUdeviceptr>(&local)));
}

void free_unknown_ordered(World& world) {
  world.say("free ordered 0xdead000", world.api().free_async(0xdead000, world.any_stream()));
}

void free_inside(World& world) {
  const Block* block = world.any_block();
  const unsigned offset = world.one_in(2) ? 8 : 512;
  if (block && block->bytes > offset)
    world.say("free inside " + text(*block), world.api().free(block->address + offset));
}

void free_inside_ordered(World& world) {
  const Block* block = world.any_block();
  const CUstream stream = world.any_stream();
  if (block && block->bytes > 512)
    world.say("free ordered inside " + text(*block), world.api().free_async(block->address + 512, stream));
}

}  // namespace differential
