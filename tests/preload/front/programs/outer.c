/* Opens its sibling by bare name; only its own RUNPATH leads there. */
#include <dlfcn.h>
#include <stddef.h>
int outer(void) {
  void* inner = dlopen("libinner.so", RTLD_NOW);
  int (*answer)(void) = inner ? (int (*)(void))dlsym(inner, "inner") : NULL;
  return answer ? answer() : -1;
}
