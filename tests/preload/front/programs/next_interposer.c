/* Another preload. It hooks a libc function and a driver function through RTLD_NEXT, and probes for its own symbol the
 * way OpenMP runtimes do: RTLD_NEXT must not find the asking object itself. */
#include <dlfcn.h>
#include <stddef.h>
#include <sys/types.h>

int interposer_probe(void) { return dlsym(RTLD_NEXT, "interposer_probe") == NULL; }

pid_t getppid(void) {
  pid_t (*next)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "getppid");
  return next ? 1000000 + 0 * next() : -1;
}

int cuMemAlloc_v2(unsigned long long* block, unsigned long bytes) {
  typedef int (*alloc_fn)(unsigned long long*, unsigned long);
  alloc_fn next = (alloc_fn)dlsym(RTLD_NEXT, "cuMemAlloc_v2");
  if (!next) return 999;
  int result = next(block, bytes);
  *block += 0x1000000;
  return result;
}
