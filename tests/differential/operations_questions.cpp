// What the driver says about a block, and about what is none.
#include <cstring>

#include "tests/differential/operations.h"

namespace differential {
namespace {

// CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE, which older headers do not have.
constexpr auto kHwDecompress = static_cast<CUpointer_attribute>(21);

struct Attribute {
  CUpointer_attribute which;
  const char* name;
};

constexpr Attribute kAttributes[] = {
    {CU_POINTER_ATTRIBUTE_CONTEXT, "context"},
    {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, "memory_type"},
    {CU_POINTER_ATTRIBUTE_DEVICE_POINTER, "device_pointer"},
    {CU_POINTER_ATTRIBUTE_HOST_POINTER, "host_pointer"},
    {CU_POINTER_ATTRIBUTE_P2P_TOKENS, "p2p_tokens"},
    {CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, "sync_memops"},
    {CU_POINTER_ATTRIBUTE_BUFFER_ID, "buffer_id"},
    {CU_POINTER_ATTRIBUTE_IS_MANAGED, "is_managed"},
    {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, "device"},
    {CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, "legacy_ipc"},
    {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, "range_start"},
    {CU_POINTER_ATTRIBUTE_RANGE_SIZE, "range_size"},
    {CU_POINTER_ATTRIBUTE_MAPPED, "mapped"},
    {CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, "handle_types"},
    {CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, "gpu_direct_rdma"},
    {CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, "access"},
    {CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, "pool"},
    {CU_POINTER_ATTRIBUTE_MAPPING_SIZE, "mapping_size"},
    {CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, "mapping_base"},
    {CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, "memory_block_id"},
    {kHwDecompress, "hw_decompress"},
};

// Attributes write 1 to 16 bytes: what they leave of a cleared buffer is zero.
struct Value {
  unsigned long long words[2] = {0, 0};
};

std::string shown(World& world, Block& block, CUpointer_attribute which, const Value& value) {
  const unsigned long long word = value.words[0];
  const std::string plain = std::to_string(word);
  if (which == kHwDecompress) return World::unless(Exception::hw_decompress, plain);
  switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return word == 0 ? "none" : word == reinterpret_cast<std::uintptr_t>(world.primary) ? "primary" : "another";
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return word == 0 ? "none" : "+" + std::to_string(word - block.address);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return fresh_buffer_id(world, block, word);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      // The handle of a destroyed pool may be that of another one by now.
      return block.pool == kNoPool || world.has_pool(block.pool) ? world.name_of(reinterpret_cast<CUmemoryPool>(word))
                                                                 : "gone";
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return World::unless(Exception::sync_memops, plain);
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
      return World::unless(Exception::p2p_tokens, plain);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return World::unless(Exception::gpu_direct_rdma, plain);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return World::unless(Exception::mapping, plain);
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return World::unless(Exception::memory_block_id, plain);
    default:
      return plain;
  }
}

// Calls that are for reserved addresses only.
void change_mapping_of(World& world, Kind kind) {
  const Block* block = world.any_block();
  const std::uint64_t choice = world.below(3);
  constexpr std::size_t kPiece = 2 << 20;
  if (!block || block->kind != kind) return;
  if (choice == 0) return world.say("unmap " + text(*block), driver().cuMemUnmap_(block->address, kPiece));
  if (choice == 1)
    return world.say("free addresses of " + text(*block), driver().cuMemAddressFree_(block->address, kPiece));
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  world.say("access to " + text(*block), driver().cuMemSetAccess_(block->address, kPiece, &access, 1));
}

}  // namespace

void ask_range(World& world) {
  Block* block = world.any_block();
  if (!block) return;
  CUdeviceptr base = 1;
  std::size_t size = 1;
  // The byte behind an odd size belongs to nobody; behind an even one a neighbour may begin.
  const bool odd = block->bytes % 512 != 0;
  const std::size_t offset = world.one_in(3) && odd ? block->bytes : world.below(block->bytes);
  const CUdeviceptr address = block->address + offset;
  const std::string call = "range of " + text(*block) + "+" + std::to_string(offset);
  int result = 0;
  switch (world.below(4)) {
    case 0:
      result = driver().cuMemGetAddressRange_(nullptr, &size, address);
      return world.say(call, result, std::to_string(size));
    case 1:
      result = driver().cuMemGetAddressRange_(&base, nullptr, address);
      return world.say(call, result, base == block->address ? "base" : std::to_string(base));
    case 2:
      result = driver().cuMemGetAddressRange_(&base, &size, 0x1000);
      return world.say("range of 0x1000", result, std::to_string(base) + " " + std::to_string(size));
    default:
      result = driver().cuMemGetAddressRange_(&base, &size, address);
      world.say(call, result, (base == block->address ? "base" : std::to_string(base)) + " " + std::to_string(size));
  }
}

void ask_attributes(World& world) {
  Block* block = world.any_block();
  if (!block) return;
  const std::size_t offset = world.below(block->bytes);
  const std::string of = " of " + text(*block) + "+" + std::to_string(offset);
  if (world.one_in(2)) {
    const Attribute& asked = kAttributes[world.below(std::size(kAttributes))];
    Value value;
    const int result = driver().cuPointerGetAttribute_(&value, asked.which, block->address + offset);
    return world.say(asked.name + of, result, result ? "" : shown(world, *block, asked.which, value));
  }
  CUpointer_attribute asked[4];
  Value values[4];
  void* answers[4];
  std::string answer;
  for (int i = 0; i < 4; ++i) {
    asked[i] = kAttributes[world.below(std::size(kAttributes))].which;
    answers[i] = &values[i];
  }
  const int result = driver().cuPointerGetAttributes_(4, asked, answers, block->address + offset);
  for (int i = 0; result == 0 && i < 4; ++i) answer += " " + shown(world, *block, asked[i], values[i]);
  world.say("attributes" + of, result, answer);
}

void ask_free_memory(World& world) {
  std::size_t free = 0;
  std::size_t total = 0;
  const int result = world.api().info(&free, &total);
  world.say("free memory", result,
            World::unless(Exception::free_bytes, std::to_string(free)) + " of " + std::to_string(total) +
                (free <= total ? "" : " MORE"));
}

void ask_allocation_handle(World& world) {
  const Block* block = world.any_block();
  if (!block || block->kind == Kind::kManaged) return;
  CUmemGenericAllocationHandle handle = 0;
  world.say("handle of " + text(*block),
            driver().cuMemRetainAllocationHandle_(&handle, reinterpret_cast<void*>(block->address)));
}

void ask_access(World& world) {
  const Block* block = world.any_block();
  if (!block || block->kind != Kind::kPlain) return;
  const CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  unsigned long long flags = 0;
  const int result = driver().cuMemGetAccess_(&flags, &location, block->address);
  world.say("access to " + text(*block), result, std::to_string(flags));
}

// Bytes that were not asked for, up to the next multiple of what allocations are rounded to.
void ask_behind(World& world) {
  const Block* block = world.any_block();
  if (!block || block->kind == Kind::kManaged || block->bytes % 512 == 0) return;
  const std::size_t offset = block->bytes + world.below(512 - block->bytes % 512);
  const std::string of = " of " + text(*block) + "+" + std::to_string(offset);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  world.say("range" + of, driver().cuMemGetAddressRange_(&base, &bytes, block->address + offset));
  std::uint64_t value[8] = {};
  world.say("memory type" + of,
            driver().cuPointerGetAttribute_(value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block->address + offset));
}

// The one that may be set, of no block, and others.
void set_attribute_wrongly(World& world) {
  const unsigned on = 1;
  const Block* block = world.any_block();
  if (world.one_in(2) || !block)
    return world.say("set sync_memops of 0x1000",
                     driver().cuPointerSetAttribute_(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 0x1000));
  world.say("set buffer_id of " + text(*block),
            driver().cuPointerSetAttribute_(&on, CU_POINTER_ATTRIBUTE_BUFFER_ID, block->address));
}

void change_mapping(World& world) { change_mapping_of(world, Kind::kPlain); }
void change_mapping_ordered(World& world) { change_mapping_of(world, Kind::kOrdered); }

void export_pointer(World& world) {
  const Block* block = world.any_block();
  if (!block || block->kind == Kind::kManaged) return;
  CUmemPoolPtrExportData data;
  world.say("export " + text(*block), driver().cuMemPoolExportPointer_(&data, block->address));
}

// Handles for other processes. What is exported is kept, so only small blocks are, and now and then.
void share(World& world) {
  constexpr std::size_t kMost = 4096;
  CUipcMemHandle handle{};
  CUipcMemHandle again{};
  const Block* block = world.any_block();
  if (!block || block->kind == Kind::kManaged) return;
  if (block->kind == Kind::kPlain && block->bytes > kMost) return;
  const int result = driver().cuIpcGetMemHandle_(&handle, block->address);
  world.say("legacy handle of " + text(*block), result);
  if (result != 0) return;
  const int repeated = driver().cuIpcGetMemHandle_(&again, block->address);
  world.say("the same once more", repeated, std::memcmp(&handle, &again, sizeof handle) == 0 ? "equal" : "DIFFERENT");
}

void share_wrongly(World& world) {
  CUipcMemHandle handle{};
  CUdeviceptr opened = 0;
  const Block* block = world.any_block();
  const std::uint64_t choice = world.below(3);
  if (!block || block->kind != Kind::kPlain || block->bytes > 4096) return;
  if (choice == 0) return world.say("handle to nowhere", driver().cuIpcGetMemHandle_(nullptr, block->address));
  if (choice == 1) return world.say("closed, never opened", driver().cuIpcCloseMemHandle_(block->address));
  if (driver().cuIpcGetMemHandle_(&handle, block->address) == 0)
    world.say("its own opened", driver().cuIpcOpenMemHandle_(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
}

// Functions by name, version and flavour; whether there is one, not where.
void look_up(World& world) {
  constexpr const char* kNames[] = {"cuMemAlloc",   "cuMemFreeAsync",       "cuCtxCreate", "cuGraphInstantiate",
                                    "cuMemGetInfo", "cuStreamBeginCapture", "cuNothing",   "cuGetProcAddress"};
  constexpr int kVersions[] = {2000, 3020, 11020, 11040, 12000, CUDA_VERSION};
  const char* name = kNames[world.below(std::size(kNames))];
  const int version = kVersions[world.below(std::size(kVersions))];
  const std::uint64_t flags = world.below(3);
  void* found = nullptr;
  const std::string what = std::string(name) + " of " + std::to_string(version) + ", " + std::to_string(flags);
  if (world.one_in(2) && driver().older_cuGetProcAddress.function) {
    const int result = driver().older_cuGetProcAddress(name, &found, version, flags);
    return world.say(what, result, found ? "one" : "none");
  }
  CUdriverProcAddressQueryResult status{};
  const int result = driver().older_cuGetProcAddress_v2(name, &found, version, flags, &status);
  world.say(what, result, (found ? "one " : "none ") + std::to_string(status));
}

}  // namespace differential
