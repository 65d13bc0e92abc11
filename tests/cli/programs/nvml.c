// A stand-in for NVIDIA's management library with one card of 16 GiB: 1 GiB is used when it is first asked, 600 MiB
// more from then on, and a process of another number has 512 MiB of it; with GPUPOOL_TEST_NVML_USERS the processes of
// that file, a line for each with its number and bytes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  unsigned long long total, free, used;
} Memory;
typedef struct {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
} Process;

static int a_card;

int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) { return *count = 1, 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) { return *device = &a_card, index != 0; }
int nvmlDeviceGetName(void* device, char* name, unsigned size) {
  return strncpy(name, "Stand-in card", size), device != &a_card;
}
int nvmlDeviceGetUUID(void* device, char* uuid, unsigned size) {
  return strncpy(uuid, "GPU-stand-in", size), device != &a_card;
}
int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  static unsigned long long used = 1ULL << 30;
  memory->total = 16ULL << 30;
  memory->used = used;
  memory->free = memory->total - used;
  used = (1ULL << 30) + (600ULL << 20);
  return device != &a_card;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, Process* found) {
  const char* path = getenv("GPUPOOL_TEST_NVML_USERS");
  FILE* users = path ? fopen(path, "r") : NULL;
  unsigned number = 0;
  while (users && number < *count && fscanf(users, "%u %llu", &found[number].pid, &found[number].used) == 2) ++number;
  if (users) {
    fclose(users);
  } else {
    found[number].pid = 4242;
    found[number++].used = 512ULL << 20;
  }
  *count = number;
  return device != &a_card;
}
int nvmlSystemGetDriverVersion(char* text, unsigned size) { return strncpy(text, "570.00", size), 0; }
