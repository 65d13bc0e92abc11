// A program whose plugin sees its own libraries first: a preload does not reach what the plugin looks up.
#define _GNU_SOURCE
#include <dlfcn.h>

int main(int count, char** words) {
  void* const plugin = count > 1 ? dlopen(words[1], RTLD_NOW | RTLD_DEEPBIND) : 0;
  if (!plugin) return 3;
  int (*const work)(void) = (int (*)(void))dlsym(plugin, "plugin_work");
  return work ? work() : 4;
}
