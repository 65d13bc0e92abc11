// Allocation, and what the memory holds.
#include <cstdint>
#include <vector>

#include "tests/differential/operations.h"

namespace differential {
namespace {

std::string number(std::size_t value) { return std::to_string(value); }

bool has_room(World& world, std::size_t bytes) { return world.live_bytes() + bytes <= world.budget_bytes; }

std::string entered(World& world, int result, CUdeviceptr address, std::size_t bytes, Kind kind, int pool,
                    CUstream stream) {
  return result == 0 ? world.enter(address, bytes, kind, pool, stream) : "";
}

// Sizes that no card has, that wrap when rounded up, and nothing at all.
std::size_t odd_size(World& world) {
  constexpr std::size_t kSizes[] = {0,
                                    SIZE_MAX,
                                    SIZE_MAX - 510,
                                    SIZE_MAX - 511,
                                    SIZE_MAX - 512,
                                    std::size_t{1} << 63,
                                    (std::size_t{1} << 63) - 1,
                                    std::size_t{1} << 45};
  return kSizes[world.below(std::size(kSizes))];
}

}  // namespace

void allocate(World& world) {
  const std::size_t bytes = world.any_size();
  if (!has_room(world, bytes)) return;
  CUdeviceptr block = 0;
  const int result = world.api().alloc(&block, bytes);
  world.say("alloc " + number(bytes), result,
            entered(world, result, block, bytes, Kind::kPlain, kNoPool, world.any_stream()));
}

void allocate_rows(World& world) {
  const std::size_t width = 1 + world.below(3000);
  const std::size_t height = 1 + world.below(40);
  const std::size_t depth = world.one_in(2) ? 1 : 1 + world.below(8);
  CUdeviceptr block = 0;
  std::size_t pitch = 0;
  const int result = depth == 1 ? world.api().alloc_pitch(&block, &pitch, width, height)
                                : world.api().alloc_3d(&block, &pitch, width, height, depth);
  const std::string what =
      "rows of " + number(width) + ", " + number(height) + " by " + number(depth) + ", pitch " + number(pitch);
  world.say(what, result,
            entered(world, result, block, pitch * height * depth, Kind::kPlain, kNoPool, world.any_stream()));
}

void allocate_ordered(World& world) {
  const std::size_t bytes = world.any_size();
  if (!has_room(world, bytes)) return;
  const CUstream stream = world.any_stream();
  CUdeviceptr block = 0;
  CUmemoryPool pool = nullptr;
  driver().cuDeviceGetMemPool_(&pool, 0);
  const int result = world.api().alloc_async(&block, bytes, stream);
  world.say("alloc ordered " + number(bytes), result,
            entered(world, result, block, bytes, Kind::kOrdered, world.number_of(pool), stream));
}

void allocate_from_pool(World& world) {
  const std::size_t bytes = world.any_size();
  if (!has_room(world, bytes)) return;
  const CUstream stream = world.any_stream();
  CUdeviceptr block = 0;
  const CUmemoryPool pool = world.any_pool().handle;
  const int result = world.api().alloc_from_pool(&block, bytes, pool, stream);
  world.say("alloc " + number(bytes) + " from " + world.name_of(pool), result,
            entered(world, result, block, bytes, Kind::kOrdered, world.number_of(pool), stream));
}

void allocate_oddly(World& world) {
  CUdeviceptr block = 1;
  std::size_t pitch = 0;
  if (world.one_in(4)) {
    const int result = world.api().alloc_pitch(&block, &pitch, std::size_t{1} << 40, std::size_t{1} << 40);
    return world.say("rows that wrap", result);
  }
  const std::size_t bytes = odd_size(world);
  const int result = world.api().alloc(&block, bytes);
  world.say("alloc " + number(bytes), result, result ? "" : block ? "BLOCK" : "null");
}

void allocate_ordered_oddly(World& world) {
  CUdeviceptr block = 1;
  const std::size_t bytes = odd_size(world);
  const int result = world.api().alloc_async(&block, bytes, world.any_stream());
  world.say("alloc ordered " + number(bytes), result, result ? "" : block ? "BLOCK" : "null");
}

void allocate_to_nowhere(World& world) {
  if (world.one_in(2)) return world.say("alloc to nowhere", world.api().alloc(nullptr, 16));
  world.say("alloc ordered to nowhere", driver().cuMemAllocAsync_(nullptr, 16, world.any_stream()));
}

// Memory that is never the pool's: managed, pinned, arrays.
void allocate_managed(World& world) {
  CUdeviceptr block = 0;
  const std::size_t bytes = 1 + world.below(1 << 20);
  const int result = driver().cuMemAllocManaged_(&block, bytes, CU_MEM_ATTACH_GLOBAL);
  world.say("alloc managed " + number(bytes), result,
            entered(world, result, block, bytes, Kind::kManaged, kNoPool, world.any_stream()));
}

void allocate_pinned(World& world) {
  void* pinned = nullptr;
  const int result = driver().cuMemAllocHost_(&pinned, 1 + world.below(1 << 20));
  world.say("alloc pinned", result);
  if (result == 0) world.say("free pinned", driver().cuMemFreeHost_(pinned));
}

void allocate_array(World& world) {
  CUDA_ARRAY3D_DESCRIPTOR description{};
  description.Width = 1 + world.below(1000);
  description.Height = 1 + world.below(100);
  description.Format = CU_AD_FORMAT_FLOAT;
  description.NumChannels = 1;
  CUarray array = nullptr;
  const int result = driver().cuArray3DCreate_(&array, &description);
  world.say("array", result);
  if (result == 0) world.say("array destroyed", driver().cuArrayDestroy_(array));
}

void use_contents(World& world) {
  Block* block = world.any_block();
  if (!block || !block->written) return;
  const CUstream stream = world.any_stream();
  if (world.one_in(3)) {
    world.write(*block, stream);
    return world.say("write " + text(*block), block->written ? 0 : 1);
  }
  if (Block* other = world.any_block(); world.one_in(3) && other != block && other->bytes <= block->bytes) {
    world.before(*block, stream);
    world.before(*other, stream);
    const int result = driver().cuMemcpyDtoDAsync_(other->address, block->address, other->bytes, stream);
    other->content = block->content;
    world.after(*block, stream);
    world.after(*other, stream);
    return world.say("copy " + text(*block) + " to " + text(*other), result);
  }
  const std::size_t bytes = block->bytes < 4096 ? block->bytes : 4096;
  const std::size_t offset = world.below(block->bytes - bytes + 1);
  std::vector<unsigned char> seen(bytes, static_cast<unsigned char>(~block->content));
  world.before(*block, stream);
  const int result = driver().cuMemcpyDtoHAsync_(seen.data(), block->address + offset, bytes, stream);
  const int waited = driver().cuStreamSynchronize_(stream);
  std::size_t wrong = 0;
  for (unsigned char byte : seen) wrong += byte != block->content;
  world.say("read " + text(*block) + " at " + number(offset), result ? result : waited,
            wrong ? number(wrong) + " WRONG" : "right");
}

}  // namespace differential
