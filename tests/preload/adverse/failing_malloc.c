/* Preloaded before the front: refuses host memory to the core alone. GPUPOOL_TEST_REFUSE=n refuses its n-th allocation,
 * n+ all from the n-th on. Everybody else is served by the C library. Exported names are the C library's own. */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

static _Atomic uintptr_t core_begin, core_end;
static atomic_long allocations;

static int find_core(struct dl_phdr_info* object, size_t size, void* unused) {
  (void)size, (void)unused;
  if (!object->dlpi_name || !strstr(object->dlpi_name, "libgpupool_core.so")) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &object->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
    atomic_store(&core_begin, object->dlpi_addr + part->p_vaddr);
    atomic_store(&core_end, object->dlpi_addr + part->p_vaddr + part->p_memsz);
  }
  return 1;
}

static int refused(void* caller) {
  static _Thread_local int inside;
  if (inside) return 0;
  if (!core_end) {
    inside = 1;
    dl_iterate_phdr(find_core, NULL);
    inside = 0;
  }
  const uintptr_t at = (uintptr_t)caller;
  if (at < core_begin || at >= core_end) return 0;
  const char* plan = getenv("GPUPOOL_TEST_REFUSE");
  if (!plan) return 0;
  char* rest;
  const long which = strtol(plan, &rest, 10);
  const long number = ++allocations;
  if (number != which && !(*rest == '+' && number > which)) return 0;
  errno = ENOMEM;
  return 1;
}

EXPORTED void* malloc(size_t bytes) { return refused(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes); }
EXPORTED void* calloc(size_t count, size_t bytes) {
  return refused(__builtin_return_address(0)) ? NULL : __libc_calloc(count, bytes);
}
EXPORTED void* realloc(void* old, size_t bytes) {
  return refused(__builtin_return_address(0)) ? NULL : __libc_realloc(old, bytes);
}
EXPORTED void* aligned_alloc(size_t alignment, size_t bytes) {
  return refused(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, bytes);
}
