/* A CUDA program for any root: opens the driver that the loader finds, allocates, writes, reads back, frees. One line
 * of output, which depends on what it read alone. Exit status 0 also where there is no driver, as of a program that can
 * do without. With `kill` it is killed with its memory still allocated, with `wait` it waits to be. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BYTES (1 << 20)

static void* library;

static void* find(const char* name) {
  void* symbol = dlsym(library, name);
  if (!symbol) printf("program: no %s\n", name);
  return symbol;
}

int main(int count, char** words) {
  static unsigned char sent[BYTES], got[BYTES];
  unsigned long long address[8];
  void* context;
  int device;
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) {
    puts("program: no driver");
    return 0;
  }
  int (*init)(unsigned) = (int (*)(unsigned))find("cuInit");
  int (*get)(int*, int) = (int (*)(int*, int))find("cuDeviceGet");
  int (*retain)(void**, int) = (int (*)(void**, int))find("cuDevicePrimaryCtxRetain");
  int (*current)(void*) = (int (*)(void*))find("cuCtxSetCurrent");
  int (*allocate)(unsigned long long*, size_t) = (int (*)(unsigned long long*, size_t))find("cuMemAlloc_v2");
  int (*release)(unsigned long long) = (int (*)(unsigned long long))find("cuMemFree_v2");
  int (*send)(unsigned long long, const void*, size_t) =
      (int (*)(unsigned long long, const void*, size_t))find("cuMemcpyHtoD_v2");
  int (*receive)(void*, unsigned long long, size_t) =
      (int (*)(void*, unsigned long long, size_t))find("cuMemcpyDtoH_v2");
  if (!init || !get || !retain || !current || !allocate || !release || !send || !receive) return 1;
  int wrong = init(0) || get(&device, 0) || retain(&context, device) || current(context);
  for (int i = 0; i < 8 && !wrong; ++i) {
    memset(sent, i + 1, BYTES);
    wrong = allocate(&address[i], BYTES) || send(address[i], sent, BYTES);
  }
  if (count > 1 && strcmp(words[1], "wait") == 0) {
    puts("program: waiting");
    fflush(stdout);
    for (;;) pause();
  }
  if (count > 1) raise(SIGKILL);
  for (int i = 0; i < 8 && !wrong; ++i) {
    memset(sent, i + 1, BYTES);
    wrong = receive(got, address[i], BYTES) || memcmp(sent, got, BYTES) || release(address[i]);
  }
  puts(wrong ? "program: wrong" : "program: right");
  return wrong;
}
