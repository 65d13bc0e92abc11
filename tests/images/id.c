/* Setuid root: says whose rights it has, and whether the loader gave it a preload. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void) {
  char line[512];
  int preloaded = 0;
  FILE* maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps)) preloaded |= strstr(line, "libgpupool") != 0;
  printf("id: %u %u %s\n", (unsigned)getuid(), (unsigned)geteuid(), preloaded ? "preloaded" : "clean");
  return 0;
}
