/* What dlsym answers for a hooked name. Any other name never comes here, but continues in the next dlsym from assembly.
 *
 * The caller's handle is honoured: only where the real answer is the driver's own function do we answer our stub. A
 * definition of somebody else (a plugin, another interposer in front of us) stays. The driver itself is answered with
 * its own function. RTLD_NEXT is the loader's business: an interposer before us finds our export, one after us the
 * driver's function, so that no ring can form. Note "no driver": our exports would make hooked names appear in a
 * process without a driver. There we answer what the loader would without us, asking it from our place for the next
 * definition, which also sets dlerror as it should be. */
#include "preload/front/front.h"

#include <dlfcn.h>

#ifndef RTLD_NEXT
#define RTLD_NEXT ((void*)-1L)
#endif

void* gpupool_next_dlsym;

typedef void* (*dlsym_fn)(void*, const char*);

struct answer {
  void* value;
  uintptr_t given; /* 0: continue in the next dlsym */
};

static const uint8_t kLengths[] = {
#define HOOK(symbol, base, version, flags, kind) sizeof #symbol - 1,
#include "preload/hooks.def"
#undef HOOK
};

#define HOOK(symbol, base, version, flags, kind) _Static_assert(sizeof #symbol <= GPUPOOL_LONGEST_NAME, #symbol);
#include "preload/hooks.def"
#undef HOOK

/* GPUPOOL_ROWS for a name that is not hooked. The third letter alone sets the driver apart from cudart, cuBLAS, cuDNN
 * and curl. */
static unsigned row_of(const char* name) {
  if (name[2] < 'A' || name[2] > 'Z') return GPUPOOL_ROWS;
  unsigned length = 3;
  while (name[length] && length < GPUPOOL_LONGEST_NAME) ++length;
  const char* row_name = gpupool_row_name(0);
  for (unsigned row = 0; row < GPUPOOL_ROWS; row_name += kLengths[row++] + 1)
    if (kLengths[row] == length && row_name[length - 1] == name[length - 1] && gpupool_equal(row_name, name))
      return row;
  return GPUPOOL_ROWS;
}

static struct answer answer(void* handle, const char* name, unsigned row, uintptr_t caller) {
  const struct answer proceed = {0, 0};
  dlsym_fn libc_dlsym = (dlsym_fn)gpupool_libc_symbol("dlsym");
  void* stub = gpupool_stubs + row * GPUPOOL_STUB_BYTES;
  if (handle == RTLD_NEXT || !libc_dlsym) return proceed;

  struct gpupool_object driver;
  void* driver_function = 0;
  int native = !gpupool_allowed();
  if (gpupool_find_driver(&driver)) {
    driver_function = gpupool_symbol_in(driver.base, driver.dynamic, name);
    native |= caller >= driver.first && caller < driver.last;
  }
  void* found = libc_dlsym(handle, name);
  if (!found || (found != stub && found != driver_function)) return proceed;
  if (!driver_function) return (struct answer){libc_dlsym(RTLD_NEXT, name), 1};
  return (struct answer){native ? driver_function : stub, 1};
}

/* Called by our dlsym for names that begin with "cu". */
struct answer gpupool_dlsym(void* handle, const char* name, uintptr_t caller) {
  const unsigned row = row_of(name);
  if (row == GPUPOOL_ROWS) return (struct answer){0, 0};
  const struct gpupool_errno saved = gpupool_errno_save();
  const struct answer result = answer(handle, name, row, caller);
  gpupool_errno_restore(saved);
  return result;
}

static void* no_dlsym(void* handle, const char* name) {
  (void)handle, (void)name;
  return 0;
}

/* Called by our dlsym the first time. Without any other dlsym (libdl not loaded yet on glibc before 2.34) nothing can
 * be found. */
void* gpupool_first_dlsym(void) {
  void* next = gpupool_find_next_dlsym();
  if (!next) return (void*)no_dlsym;
  __atomic_store_n(&gpupool_next_dlsym, next, __ATOMIC_RELEASE);
  return next;
}
