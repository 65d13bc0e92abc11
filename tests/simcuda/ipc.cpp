// Legacy IPC. A handle names the process, the file behind its card's arena, and the block; opening it maps the block's
// pages of that file. An interior address silently names the base of its allocation, and the last 8 bytes of a handle
// are neither written nor read, as measured.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <unordered_map>

#include "tests/simcuda/call.h"
#include "tests/simcuda/memory.h"

namespace gpupool::sim {
namespace {

constexpr uint32_t kMagic = 0x43504953;
constexpr uint64_t kPage = 4096;

struct HandleContent {
  uint32_t magic;
  int32_t process;
  int32_t file;
  int32_t device;
  uint64_t offset;
  uint64_t size;
};
static_assert(sizeof(HandleContent) <= sizeof(CUipcMemHandle) - 8);

// An opened block starts within a page that neighbours share. Opened again in its context, it is the same.
struct Opened {
  HandleContent content;
  Context* context;
  void* pages;
  uint64_t bytes;
  unsigned users;
};
std::unordered_map<CUdeviceptr, Opened>& opened() {
  static auto* const instance = new std::unordered_map<CUdeviceptr, Opened>;
  return *instance;
}

CUresult get_handle(CUipcMemHandle* out, CUdeviceptr address) {
  Context* context = nullptr;
  if (const CUresult e = current_context(context)) return e;
  const Allocation* found = find_allocation(address);
  if (!out || !found || found->kind != MemoryKind::kPlain) return CUDA_ERROR_INVALID_VALUE;
  const Arena& arena = state().devices[static_cast<size_t>(found->device)]->arena;
  const HandleContent content{kMagic, getpid(), arena.file(), found->device, arena.offset(found->start), found->size};
  std::memset(out, 0, sizeof *out);
  std::memcpy(out, &content, sizeof content);
  return CUDA_SUCCESS;
}

CUresult open_handle(CUdeviceptr* out, CUipcMemHandle handle, unsigned flags) {
  Context* context = nullptr;
  if (const CUresult e = current_context(context)) return e;
  HandleContent content;
  std::memcpy(&content, &handle, sizeof content);
  if (!out || content.magic != kMagic || flags & ~unsigned{CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS})
    return CUDA_ERROR_INVALID_VALUE;
  // A process cannot open its own handle.
  if (content.process == getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  for (auto& [address, known] : opened()) {
    if (known.context != context || std::memcmp(&known.content, &content, sizeof content) != 0) continue;
    ++known.users;
    *out = address;
    return CUDA_SUCCESS;
  }
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", content.process, content.file);
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t skip = content.offset % kPage;
  const uint64_t bytes = (skip + content.size + kPage - 1) / kPage * kPage;
  void* pages =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(content.offset - skip));
  close(file);
  if (pages == MAP_FAILED) return CUDA_ERROR_MAP_FAILED;
  *out = reinterpret_cast<CUdeviceptr>(pages) + skip;
  opened()[*out] = Opened{content, context, pages, bytes, 1};
  add_allocation(*out, content.size, MemoryKind::kImported, context, context->device->ordinal);
  state().regions[*out] = Region{content.size, all_devices()};
  return CUDA_SUCCESS;
}

CUresult close_handle(CUdeviceptr address) {
  Context* context = nullptr;
  if (const CUresult e = current_context(context)) return e;
  const auto found = opened().find(address);
  if (found == opened().end()) return CUDA_ERROR_INVALID_VALUE;
  if (--found->second.users == 0) remove_allocation(address);
  return CUDA_SUCCESS;
}

}  // namespace

void unmap_imported(const Allocation& allocation) {
  const auto found = opened().find(allocation.start);
  munmap(found->second.pages, found->second.bytes);
  opened().erase(found);
}

}  // namespace gpupool::sim

using namespace gpupool::sim;

CUresult cuIpcGetMemHandle(CUipcMemHandle* out, CUdeviceptr address) {
  return enter(Symbol::cuIpcGetMemHandle, get_handle, out, address);
}
CUresult cuIpcOpenMemHandle(CUdeviceptr* out, CUipcMemHandle handle, unsigned flags) {
  return enter(Symbol::cuIpcOpenMemHandle, open_handle, out, handle, flags);
}
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* out, CUipcMemHandle handle, unsigned flags) {
  return enter(Symbol::cuIpcOpenMemHandle_v2, open_handle, out, handle, flags);
}
CUresult cuIpcCloseMemHandle(CUdeviceptr address) { return enter(Symbol::cuIpcCloseMemHandle, close_handle, address); }
