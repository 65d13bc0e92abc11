// Used by deepbind.c: takes device memory by symbols that it looks up itself, and stays long enough to be seen.
#include <dlfcn.h>
#include <unistd.h>

int plugin_work(void) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver) return 1;
  int (*const init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
  int (*const retain)(void**, int) = (int (*)(void**, int))dlsym(driver, "cuDevicePrimaryCtxRetain");
  int (*const choose)(void*) = (int (*)(void*))dlsym(driver, "cuCtxSetCurrent");
  int (*const take)(unsigned long long*, unsigned long) =
      (int (*)(unsigned long long*, unsigned long))dlsym(driver, "cuMemAlloc_v2");
  void* context = 0;
  unsigned long long block = 0;
  if (init(0) || retain(&context, 0) || choose(context) || take(&block, 1 << 20)) return 2;
  usleep(1500000);  // several looks of it
  return 0;
}
