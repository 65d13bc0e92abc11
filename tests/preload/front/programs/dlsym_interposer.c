/* Another preload that overrides dlsym, in plain C as many do. It takes the real one by version and counts. */
#include <dlfcn.h>
#include <stddef.h>

static int calls;
int dlsym_interposer_calls(void) { return calls; }

void* dlsym(void* handle, const char* name) {
  static void* (*real)(void*, const char*);
#if defined(__x86_64__)
  if (!real) real = (void* (*)(void*, const char*))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
#else
  if (!real) real = (void* (*)(void*, const char*))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
#endif
  ++calls;
  return real(handle, name);
}
