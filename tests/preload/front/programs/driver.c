/* A small libcuda.so.1: enough functions to see who was called. Its addresses are 0x1000 + size; a hook of core.cpp
 * adds a mark to them. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef unsigned long long pointer;

int cuInit(unsigned flags) { return (int)flags; }
int cuMemAlloc_v2(pointer* block, size_t bytes) { return *block = 0x1000 + bytes, 0; }
int cuMemFree_v2(pointer block) { return block == 0 ? 0 : 1; }
int cuMemAllocAsync(pointer* block, size_t bytes, void* stream) { return (void)stream, *block = 0x2000 + bytes, 0; }
int cuMemAllocAsync_ptsz(pointer* block, size_t bytes, void* stream) {
  return (void)stream, *block = 0x3000 + bytes, 0;
}

/* Looks its own function up, as drivers do; whoever answers, the caller sees which it was. */
int cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  int (*alloc)(pointer*, size_t) = (int (*)(pointer*, size_t))dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
  if (!alloc) {
    void* self = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    alloc = (int (*)(pointer*, size_t))dlsym(self, "cuMemAlloc_v2");
  }
  pointer block = 0;
  alloc(&block, 1);
  *free_bytes = block;
  *total = 100;
  return 0;
}

int cuLibraryLoadData(long a, long b, long c, long d, long e, long f, long g, long h) {
  return a == 1 && b == 2 && c == 3 && d == 4 && e == 5 && f == 6 && g == 7 && h == 8 ? 0 : 1;
}

/* Not the real parameters: floating-point and stack arguments, to see that a first call leaves all of them alone. */
int cuGraphAddMemAllocNode(long a, double b, long c, double d, long e, double f, long g, double h, long i, double j,
                           long k, double l, long m, double n, long o, double p, long q, double r) {
  return a == 1 && b == 2 && c == 3 && d == 4 && e == 5 && f == 6 && g == 7 && h == 8 && i == 9 && j == 10 && k == 11 &&
                 l == 12 && m == 13 && n == 14 && o == 15 && p == 16 && q == 17 && r == 18
             ? 0
             : 1;
}

int cuGetProcAddress_v2(const char* name, void** function, int version, uint64_t flags, int* status) {
  *function = NULL;
  if (!strcmp(name, "cuInit")) *function = (void*)cuInit;
  if (!strcmp(name, "cuMemAlloc") && version >= 3020) *function = (void*)cuMemAlloc_v2;
  if (!strcmp(name, "cuMemAllocAsync") && version >= 11020)
    *function = flags & 2 ? (void*)cuMemAllocAsync_ptsz : (void*)cuMemAllocAsync;
  if (!strcmp(name, "cuGetProcAddress") && version >= 12000) *function = (void*)cuGetProcAddress_v2;
  if (status) *status = *function ? 0 : 1;
  return 0;
}

int cuGetProcAddress(const char* name, void** function, int version, uint64_t flags) {
  int status;
  return cuGetProcAddress_v2(name, function, version, flags, &status);
}
