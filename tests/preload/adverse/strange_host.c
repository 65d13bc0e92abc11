/* Preloaded before the front: a host with a clock that is set all the time, by up to a day each way, and with disks
 * that take their time. GPUPOOL_TEST_STRANGE=clock or disk. Exported names are the C library's own. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

static int is_strange(const char* what) {
  const char* chosen = getenv("GPUPOOL_TEST_STRANGE");
  return chosen && strcmp(chosen, what) == 0;
}

/* Every clock but the one that is set runs on. */
EXPORTED int clock_gettime(clockid_t clock, struct timespec* now) {
  static atomic_uint_fast64_t calls;
  const int result = (int)syscall(SYS_clock_gettime, clock, now);
  const int settable = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  if (result == 0 && settable && is_strange("clock")) {
    const uint64_t mixed = (atomic_fetch_add(&calls, 1) + 1) * 0x9E3779B97F4A7C15u;
    now->tv_sec += (time_t)(mixed >> 32) % 172800 - 86400;
  }
  return result;
}

static void take_time(int file) {
  struct stat status;
  const struct timespec moment = {0, 20 * 1000 * 1000};
  if (is_strange("disk") && fstat(file, &status) == 0 && S_ISREG(status.st_mode)) nanosleep(&moment, NULL);
}

EXPORTED ssize_t write(int file, const void* bytes, size_t count) {
  take_time(file);
  return syscall(SYS_write, file, bytes, count);
}

EXPORTED ssize_t pwrite(int file, const void* bytes, size_t count, off_t at) {
  take_time(file);
  return syscall(SYS_pwrite64, file, bytes, count, at);
}
