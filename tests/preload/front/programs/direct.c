/* Linked with libcuda.so.1, as programs of the driver API are. */
#include <stdio.h>
int cuMemFree_v2(unsigned long long);
int cuMemAlloc_v2(unsigned long long*, unsigned long);
int main(void) {
  unsigned long long block = 0;
  int freed = cuMemFree_v2(0);
  int result = cuMemAlloc_v2(&block, 16);
  printf("%d %d %llx\n", freed, result, block);
  return 0;
}
