// See lookup.h. One rule guards against ABIs that hooks.def does not know (a newer driver, a name that changed its
// meaning): the driver must give the same pointer for the row's own version as for the version asked for. Programs
// mostly ask for a row's own version, so the second question is rare.
#include "preload/lookup.h"

#include <cstring>

namespace gpupool {
namespace {

bool per_thread(cuuint64_t flags) { return (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0; }

void* ask_driver(const ProcResolver& resolver, const char* name, int version, cuuint64_t flags) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult status;
  const CUresult result = resolver.real_v2 ? resolver.real_v2(name, &found, version, flags, &status)
                                           : resolver.real_v1(name, &found, version, flags);
  return result == CUDA_SUCCESS ? found : nullptr;
}

void replace(const ProcResolver& resolver, const char* name, void** function, int version, cuuint64_t flags) {
  const unsigned row = find_hook_row(name, version, flags);
  if (row == kHookCount || !resolver.hooks[row]) return;
  if (kHooks[row].version != version && ask_driver(resolver, name, kHooks[row].version, flags) != *function) return;
  *function = resolver.hooks[row];
}

}  // namespace

unsigned find_hook_row(const char* name, int version, cuuint64_t flags) {
  unsigned best = kHookCount;
  for (unsigned row = 0; row < kHookCount; ++row) {
    const Hook& hook = kHooks[row];
    if (hook.version > version || (hook.stream == kStream_PTSZ && !per_thread(flags)) ||
        std::strcmp(hook.base, name) != 0)
      continue;
    const bool newer = best == kHookCount || hook.version > kHooks[best].version;
    const bool closer = !newer && hook.version == kHooks[best].version && hook.stream > kHooks[best].stream;
    if (newer || closer) best = row;
  }
  return best;
}

CUresult get_proc_address(const ProcResolver& resolver, const char* name, void** function, int version,
                          cuuint64_t flags) {
  if (!resolver.real_v1) return CUDA_ERROR_NOT_FOUND;
  const CUresult result = resolver.real_v1(name, function, version, flags);
  if (result == CUDA_SUCCESS && name && function && *function) replace(resolver, name, function, version, flags);
  return result;
}

CUresult get_proc_address_v2(const ProcResolver& resolver, const char* name, void** function, int version,
                             cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  if (!resolver.real_v2) return CUDA_ERROR_NOT_FOUND;
  const CUresult result = resolver.real_v2(name, function, version, flags, status);
  if (result == CUDA_SUCCESS && name && function && *function) replace(resolver, name, function, version, flags);
  return result;
}

}  // namespace gpupool
