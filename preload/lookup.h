// cuGetProcAddress as the program sees it: the driver's answer, with our hook in place of a function of hooks.def.
//
// The driver is asked first and its result, status and refusals stand. A pointer is replaced only if a row matches in
// name, version and stream flavour; an answer by name alone would hand out a function of another ABI. Owner: the core;
// stateless, any thread.
#pragma once

#include <cudaTypedefs.h>

#include "preload/hooks.h"

namespace gpupool {

struct ProcResolver {
  PFN_cuGetProcAddress_v11030 real_v1;  // since CUDA 11.3; null if the driver has none
  PFN_cuGetProcAddress_v12000 real_v2;  // since CUDA 12.0; null if the driver has none
  void* const* hooks;                   // kHookCount entries in the order of hooks.def; null: not ours
};

// The row whose ABI a request for (base name, version, flags) means, or kHookCount. Flags are CU_GET_PROC_ADDRESS_*:
// with PER_THREAD_DEFAULT_STREAM the per-thread spelling wins where there is one, otherwise only the legacy spelling
// counts.
unsigned find_hook_row(const char* name, int version, cuuint64_t flags);

// The bodies of the two hooks; parameters and results as the driver documents them.
CUresult get_proc_address(const ProcResolver& resolver, const char* name, void** function, int version,
                          cuuint64_t flags);
CUresult get_proc_address_v2(const ProcResolver& resolver, const char* name, void** function, int version,
                             cuuint64_t flags, CUdriverProcAddressQueryResult* status);

}  // namespace gpupool
