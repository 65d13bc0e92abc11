// CUDA's own header, seen as the driver sees it: every version and `_ptsz` variant of a function is declared under its
// true symbol, so that a definition with another type does not compile, and all of them are visible to the linker.
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#pragma GCC visibility push(default)
#include <cuda.h>
#include <cudaTypedefs.h>
#pragma GCC visibility pop

static_assert(CUDA_VERSION >= 13000, "the simulator implements the driver interface of CUDA 13.0");
