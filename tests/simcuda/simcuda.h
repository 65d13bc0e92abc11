/* What tests may ask of the simulated driver beside the CUDA driver API. A program that is only run under the simulator
 * uses the environment instead (README.md). All functions may be called from any thread, before cuInit too.
 *
 * Kernels (cuModuleGetFunction by name, from any image); parameters in this order:
 *   fill(CUdeviceptr to, uint64_t bytes, uint32_t seed)                       writes simcuda_pattern(seed, i) to byte i
 *   check(CUdeviceptr at, uint64_t bytes, uint32_t seed, CUdeviceptr count)   adds the number of wrong bytes to
 * *(uint32_t*)count copy(CUdeviceptr to, CUdeviceptr from, uint64_t bytes) spin(uint64_t ticks)                 takes
 * that much virtual time (one tick is one microsecond of cuEventElapsedTime) wait_flag(CUdeviceptr flag)          does
 * not start before *(uint32_t*)flag is not 0 set_flag(CUdeviceptr flag)           writes 1 fault() an illegal address:
 * the context is lost
 */
#ifndef GPUPOOL_TESTS_SIMCUDA_SIMCUDA_H
#define GPUPOOL_TESTS_SIMCUDA_SIMCUDA_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Calls that reached the driver through `symbol` ("cuMemAlloc_v2") since the start or the last reset. */
uint64_t simcuda_calls(const char* symbol);
void simcuda_reset_counts(void);
// Frees what is left in the cards' memory pools, which no reset does: between tests of one process.
void simcuda_empty_pools(void);

/* Replaces the faults of GPUPOOL_SIM_FAULT and starts its counting anew; "" for none. Returns 0, or -1 for a text it
 * cannot read. */
int simcuda_set_faults(const char* faults);

/* "late", "eager" or "random", as GPUPOOL_SIM_SCHEDULE. Returns 0, or -1 for another name. */
int simcuda_set_schedule(const char* schedule, uint64_t seed);

/* Operations that are queued and have not run. */
uint64_t simcuda_pending(void);

/* Lets time pass: runs everything that can run, in the order of the schedule. */
void simcuda_run(void);

/* Operations that ran so far: virtual time, in ticks. */
uint64_t simcuda_now(void);

#pragma GCC visibility pop

/* What kernel `fill` writes: word w, little endian, and so byte i. */
static inline uint32_t simcuda_pattern_word(uint32_t seed, uint64_t w) {
  uint32_t x = seed * 2654435761u + (uint32_t)w * 2246822519u + 374761393u;
  x ^= x >> 15;
  x *= 2246822519u;
  return x ^ (x >> 13);
}
static inline uint8_t simcuda_pattern(uint32_t seed, uint64_t i) {
  return (uint8_t)(simcuda_pattern_word(seed, i >> 2) >> (8 * (i & 3)));
}

#ifdef __cplusplus
}
#endif
#endif
