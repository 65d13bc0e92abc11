/* The contract between the front (libgpupool.so, freestanding C) and the core (libgpupool_core.so, C++).
 * The front loads the core at the first hooked CUDA call, hands it this table, and gets one function per row of
 * hooks.def. Both sides come from one build: the core refuses a front of another layout, version or list of hooks. The
 * first two members stay as they are in every layout, and `abi` counts the layouts. */
#ifndef GPUPOOL_PRELOAD_FRONT_ABI_H
#define GPUPOOL_PRELOAD_FRONT_ABI_H

#include <stdint.h>

#define GPUPOOL_FRONT_ABI 2u

struct gpupool_front {
  uint32_t abi;                                        /* GPUPOOL_FRONT_ABI */
  uint32_t hook_count;                                 /* rows of hooks.def */
  const char* version;                                 /* of the front's build */
  const char* hook_names;                              /* of all rows, each with its end, after each other */
  void* (*real_dlsym)(void* handle, const char* name); /* the loader's own */
  void* driver;                                        /* handle of the loaded libcuda.so.1 */
  const char* directory;                               /* where the front lies; ends with '/' */
};

/* Exported by the core. Fills hooks[i] with what a call of row i shall reach. Returns 0, or non-zero when the pair does
 * not fit or the core cannot work here; the front then sends every call to the driver. */
typedef int (*gpupool_core_start_fn)(const struct gpupool_front* front, void** hooks);
#define GPUPOOL_CORE_START "gpupool_core_start"
#define GPUPOOL_CORE_OF_ANOTHER_BUILD 2 /* the answer to a front that it does not belong to */

#endif
