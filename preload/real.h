// The driver's own functions, one typed pointer for each row of hooks.def, and the declaration of the hook that stands
// before it. Filled once by core.cpp before the first hook can run and constant afterwards, so no lock. A pointer is
// null where the driver is too old to have the function; its hook is then never handed out. Include this header first:
// it asks cuda.h for every version of every function under its own name.
#pragma once

#if defined(__cuda_cuda_h__) && !defined(__CUDA_API_VERSION_INTERNAL)
#error "preload/real.h has to come before cuda.h"
#endif
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
#include <cudaTypedefs.h>

#include <type_traits>

#if CUDA_VERSION < 13000
using PFN_cuMemGetDefaultMemPool_v13000 = CUresult (*)(CUmemoryPool*, CUmemLocation*, CUmemAllocationType);
using PFN_cuMemGetMemPool_v13000 = CUresult (*)(CUmemoryPool*, CUmemLocation*, CUmemAllocationType);
using PFN_cuMemSetMemPool_v13000 = CUresult (*)(CUmemLocation*, CUmemAllocationType, CUmemoryPool);
#endif

#define GPUPOOL_DRIVER_FUNCTION_0(base, version) PFN_##base##_v##version
#define GPUPOOL_DRIVER_FUNCTION_PTSZ(base, version) PFN_##base##_v##version##_ptsz

namespace gpupool {

/// The rows of hooks.def by name; a row's number is its place in the table between front and core.
enum HookRow : unsigned {
#define HOOK(symbol, base, version, flags, kind) kRow_##symbol,
#include "preload/hooks.def"
#undef HOOK
  kHookRows
};

namespace real {
#define HOOK(symbol, base, version, flags, kind) extern GPUPOOL_DRIVER_FUNCTION_##flags(base, version) symbol;
#include "preload/hooks.def"
#undef HOOK
}  // namespace real

namespace hook {
#define HOOK(symbol, base, version, flags, kind) \
  std::remove_pointer_t<GPUPOOL_DRIVER_FUNCTION_##flags(base, version)> symbol;
#include "preload/hooks.def"
#undef HOOK
}  // namespace hook

}  // namespace gpupool
