/* A driver of a dozen lines, for roots in which the simulated one cannot run, and for the front alone: host memory as
 * device memory. */
#include <stdlib.h>
#include <string.h>

int cuInit(unsigned flags) { return (int)flags; }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal; }
int cuDevicePrimaryCtxRetain(void** context, int device) { return *context = &context, device; }
int cuCtxSetCurrent(void* context) { return context == 0; }
int cuMemAlloc_v2(unsigned long long* address, size_t bytes) {
  *address = (unsigned long long)malloc(bytes);
  return *address ? 0 : 2;
}
int cuMemFree_v2(unsigned long long address) {
  free((void*)address);
  return 0;
}
int cuMemcpyHtoD_v2(unsigned long long to, const void* from, size_t bytes) {
  memcpy((void*)to, from, bytes);
  return 0;
}
int cuMemcpyDtoH_v2(void* to, unsigned long long from, size_t bytes) {
  memcpy(to, (const void*)from, bytes);
  return 0;
}
