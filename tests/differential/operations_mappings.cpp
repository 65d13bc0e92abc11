// Virtual memory that the program manages itself, beside the pool's; descriptors of blocks; opaque memory and code.
#include <unistd.h>

#include <vector>

#include "tests/differential/operations.h"

namespace differential {
namespace {

constexpr std::size_t kPiece = std::size_t{2} << 20;

CUmemAllocationProp on_device() {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  return prop;
}

CUmemAccessDesc open_to_device() {
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return access;
}

void use_mapped(World& world, CUdeviceptr place, std::size_t bytes) {
  const auto content = static_cast<unsigned char>(world.below(256));
  std::vector<unsigned char> seen(4096);
  CUdeviceptr base = 0;
  std::size_t size = 0;
  unsigned long long flags = 0;
  const CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  world.say("write mapped", driver().cuMemsetD8_(place, content, bytes));
  const int read = driver().cuMemcpyDtoH_(seen.data(), place + bytes - seen.size(), seen.size());
  world.say("read mapped", read, seen.front() == content && seen.back() == content ? "right" : "WRONG");
  const int asked = driver().cuMemGetAccess_(&flags, &here, place);
  world.say("access to mapped", asked, std::to_string(flags));
  const int ranged = driver().cuMemGetAddressRange_(&base, &size, place + 1);
  world.say("range of mapped", ranged, (base == place ? "base " : "ANOTHER ") + std::to_string(size));
  world.say("free of mapped", driver().cuMemFree_(place));
  CUmemGenericAllocationHandle retained = 0;
  const int kept = driver().cuMemRetainAllocationHandle_(&retained, reinterpret_cast<void*>(place));
  world.say("handle of mapped", kept, retained ? "one" : "none");
  if (kept == 0) world.say("handle released", driver().cuMemRelease_(retained));
}

template <class Load, class Unload>
void load(World& world, const char* what, Load ask, Unload unload) {
  const int result = ask();
  world.say(what, result);
  if (result == 0) world.say("unloaded", unload());
}

// A module without a function, as text.
constexpr char kModule[] = ".version 7.8\n.target sm_75\n.address_size 64\n";

}  // namespace

void map_own_memory(World& world) {
  const std::size_t bytes = (1 + world.below(4)) * kPiece;
  const CUmemAllocationProp prop = on_device();
  const CUmemAccessDesc access = open_to_device();
  CUdeviceptr place = 0;
  CUmemGenericAllocationHandle handle = 0;
  world.say("reserve " + std::to_string(bytes), driver().cuMemAddressReserve_(&place, bytes, 0, 0, 0));
  world.say("create", driver().cuMemCreate_(&handle, bytes, &prop, 0));
  if (place && handle) {
    world.say("map", driver().cuMemMap_(place, bytes, 0, handle, 0));
    world.say("open", driver().cuMemSetAccess_(place, bytes, &access, 1));
    use_mapped(world, place, bytes);
    if (world.one_in(2)) {  // the mapping keeps it
      world.say("release", driver().cuMemRelease_(handle));
      handle = 0;
    }
    world.say("unmap", driver().cuMemUnmap_(place, bytes));
  }
  if (handle) world.say("release", driver().cuMemRelease_(handle));
  if (place) world.say("free addresses", driver().cuMemAddressFree_(place, bytes));
}

void create_wrongly(World& world) {
  constexpr std::size_t kSizes[] = {0, 1, kPiece + 512, std::size_t{1} << 50};
  const CUmemAllocationProp prop = on_device();
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr place = 0;
  switch (world.below(3)) {
    case 0:
      return world.say("release of nothing", driver().cuMemRelease_(0));
    case 1:
      return world.say("reserve nothing", driver().cuMemAddressReserve_(&place, 0, 0, 0, 0));
    default: {
      const std::size_t bytes = kSizes[world.below(std::size(kSizes))];
      world.say("create " + std::to_string(bytes), driver().cuMemCreate_(&handle, bytes, &prop, 0));
    }
  }
}

// A handle of the program's onto a block of the driver's.
void map_over_block(World& world) {
  const Block* block = world.any_block();
  if (!block || block->kind == Kind::kManaged) return;
  const CUmemAllocationProp prop = on_device();
  CUmemGenericAllocationHandle handle = 0;
  world.say("create", driver().cuMemCreate_(&handle, kPiece, &prop, 0));
  if (!handle) return;
  const CUdeviceptr place = block->address / kPiece * kPiece;
  world.say("map over " + text(*block), driver().cuMemMap_(place, kPiece, 0, handle, 0));
  world.say("release", driver().cuMemRelease_(handle));
}

// A descriptor for other drivers. What has one is kept, so only small blocks get one; whole pages, as programs ask.
void describe_range(World& world) {
  constexpr std::size_t kPage = 4096;
  constexpr std::size_t kMost = 65536;
  const Block* block = world.any_block();
  if (!block || block->kind != Kind::kPlain || block->bytes > kMost || block->bytes < 2 * kPage) return;
  const CUdeviceptr first = (block->address + kPage - 1) / kPage * kPage;
  const std::size_t bytes = (block->address + block->bytes - first) / kPage * kPage;
  int file = -1;
  switch (world.below(4)) {
    case 0:
      return world.say("descriptor to nowhere", driver().cuMemGetHandleForAddressRange_(
                                                    nullptr, first, bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    case 1:
      return world.say("descriptor of 0x1000", driver().cuMemGetHandleForAddressRange_(
                                                   &file, 0x1000, kPage, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    default:
      break;
  }
  const int result =
      driver().cuMemGetHandleForAddressRange_(&file, first, bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
  world.say("descriptor of " + text(*block), result, file >= 0 ? "one" : "none");
  if (file >= 0) close(file);
}

void allocate_other_arrays(World& world) {
  CUDA_ARRAY_DESCRIPTOR flat{};
  flat.Width = 1 + world.below(1000);
  flat.Height = world.below(100);
  flat.Format = CU_AD_FORMAT_UNSIGNED_INT8;
  flat.NumChannels = 4;
  CUarray array = nullptr;
  world.say("flat array", driver().cuArrayCreate_(&array, &flat));
  if (array) world.say("array destroyed", driver().cuArrayDestroy_(array));
  CUDA_ARRAY3D_DESCRIPTOR deep{};
  deep.Width = deep.Height = 64 + world.below(64);
  deep.Format = CU_AD_FORMAT_FLOAT;
  deep.NumChannels = 1;
  CUmipmappedArray levels = nullptr;
  world.say("mipmapped array", driver().cuMipmappedArrayCreate_(&levels, &deep, 3));
  if (levels) world.say("mipmapped array destroyed", driver().cuMipmappedArrayDestroy_(levels));
}

void allocate_host(World& world) {
  void* pinned = nullptr;
  const int result = driver().cuMemHostAlloc_(&pinned, 1 + world.below(1 << 20), CU_MEMHOSTALLOC_PORTABLE);
  world.say("alloc portable", result);
  if (!pinned) return;
  world.say("free by the device's call", world.api().free(reinterpret_cast<CUdeviceptr>(pinned) + 1));
  world.say("free portable", driver().cuMemFreeHost_(pinned));
}

void load_code(World& world) {
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  const auto unload = [&] { return driver().cuModuleUnload_(module); };
  load(
      world, "module", [&] { return driver().cuModuleLoadData_(&module, kModule); }, unload);
  load(
      world, "module with options", [&] { return driver().cuModuleLoadDataEx_(&module, kModule, 0, nullptr, nullptr); },
      unload);
  load(
      world, "library",
      [&] { return driver().cuLibraryLoadData_(&library, kModule, nullptr, nullptr, 0, nullptr, nullptr, 0); },
      [&] { return driver().cuLibraryUnload_(library); });
}

void load_code_oddly(World& world) {
  constexpr char kFile[] = "/nonexistent/module";
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  const auto unload = [&] { return driver().cuModuleUnload_(module); };
  load(
      world, "module of a file", [&] { return driver().cuModuleLoad_(&module, kFile); }, unload);
  load(
      world, "fat binary", [&] { return driver().cuModuleLoadFatBinary_(&module, kModule); }, unload);
  load(
      world, "library of a file",
      [&] { return driver().cuLibraryLoadFromFile_(&library, kFile, nullptr, nullptr, 0, nullptr, nullptr, 0); },
      [&] { return driver().cuLibraryUnload_(library); });
}

}  // namespace differential
