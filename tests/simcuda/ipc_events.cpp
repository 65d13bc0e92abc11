// Events between processes. A handle names the process and the file that it keeps the event's page in. Of an opened
// event the device's waits and the host's questions are simulated, not the host's wait.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "tests/simcuda/call.h"
#include "tests/simcuda/memory_file.h"
#include "tests/simcuda/shared_event.h"
#include "tests/simcuda/state.h"

namespace gpupool::sim {
namespace {

constexpr uint32_t kMagic = 0x45504953;
constexpr size_t kBytes = 4096;

struct Content {
  uint32_t magic;
  int32_t process;
  int32_t file;
};
static_assert(sizeof(Content) <= sizeof(CUipcEventHandle));

CUresult get_event(CUipcEventHandle* out, CUevent event) {
  if (!state().events.valid(event)) return CUDA_ERROR_INVALID_HANDLE;
  constexpr unsigned kNeeded = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
  if (!out || (event->flags & kNeeded) != kNeeded) return CUDA_ERROR_INVALID_VALUE;
  if (!event->shared) event->shared = SharedEvent::make();
  if (!event->shared) return CUDA_ERROR_OPERATING_SYSTEM;
  *out = event->shared->handle();
  return CUDA_SUCCESS;
}

CUresult open_event(CUevent* out, CUipcEventHandle handle) {
  Context* context = nullptr;
  if (const CUresult e = current_context(context)) return e;
  std::shared_ptr<SharedEvent> shared = SharedEvent::open(handle);
  if (!out || !shared) return CUDA_ERROR_INVALID_VALUE;
  *out = state().events.make();
  (*out)->context = context;
  (*out)->flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
  (*out)->shared = std::move(shared);
  return CUDA_SUCCESS;
}

}  // namespace

std::shared_ptr<SharedEvent> SharedEvent::map(int file) {
  if (file < 0) return nullptr;
  void* page = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (page != MAP_FAILED) return std::shared_ptr<SharedEvent>(new SharedEvent(file, static_cast<Page*>(page)));
  close(file);
  return nullptr;
}

std::shared_ptr<SharedEvent> SharedEvent::make() {
  const int file = memory_file("simcuda-event");
  return file >= 0 && ftruncate(file, kBytes) == 0 ? map(file) : nullptr;
}

std::shared_ptr<SharedEvent> SharedEvent::open(const CUipcEventHandle& handle) {
  Content content;
  std::memcpy(&content, &handle, sizeof content);
  if (content.magic != kMagic) return nullptr;
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", content.process, content.file);
  return map(::open(path, O_RDWR | O_CLOEXEC));
}

SharedEvent::~SharedEvent() {
  munmap(page_, kBytes);
  close(file_);
}

CUipcEventHandle SharedEvent::handle() const {
  const Content content{kMagic, getpid(), file_};
  CUipcEventHandle handle{};
  std::memcpy(&handle, &content, sizeof content);
  return handle;
}

void SharedEvent::complete(uint64_t number) {
  uint64_t done = page_->done;
  while (done < number && !page_->done.compare_exchange_weak(done, number)) continue;
}

}  // namespace gpupool::sim

using namespace gpupool::sim;

CUresult cuIpcGetEventHandle(CUipcEventHandle* out, CUevent event) {
  return enter(Symbol::cuIpcGetEventHandle, get_event, out, event);
}
CUresult cuIpcOpenEventHandle(CUevent* out, CUipcEventHandle handle) {
  return enter(Symbol::cuIpcOpenEventHandle, open_event, out, handle);
}
