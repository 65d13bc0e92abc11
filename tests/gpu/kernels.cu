// The kernels of race.cpp and no_hang.cpp, with the names and parameters that the simulated driver has built in, so
// that the same programs run on both; and those of textures.cpp, which needs a card. `ticks` are microseconds. What
// byte i is for a seed is tests/simcuda/simcuda.h's business; the same function is written out here for the device.
#include <cstdint>

namespace {

__device__ std::uint64_t first() { return blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x; }
__device__ std::uint64_t step() { return gridDim.x * std::uint64_t{blockDim.x}; }

__device__ unsigned pattern(unsigned seed, std::uint64_t i) {
  unsigned x = seed * 2654435761u + static_cast<unsigned>(i >> 2) * 2246822519u + 374761393u;
  x ^= x >> 15;
  x *= 2246822519u;
  return (x ^ (x >> 13)) >> (8 * (i & 3)) & 255u;
}

}  // namespace

extern "C" {

__global__ void fill(unsigned char* to, std::uint64_t bytes, unsigned seed) {
  for (std::uint64_t i = first(); i < bytes; i += step()) to[i] = static_cast<unsigned char>(pattern(seed, i));
}

__global__ void check(const unsigned char* at, std::uint64_t bytes, unsigned seed, unsigned* count) {
  unsigned wrong = 0;
  for (std::uint64_t i = first(); i < bytes; i += step()) wrong += at[i] != pattern(seed, i);
  if (wrong != 0) atomicAdd(count, wrong);
}

__global__ void spin(std::uint64_t ticks) {
  std::uint64_t start = 0;
  std::uint64_t now = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - start < ticks * 1000);
}

__global__ void wait_flag(const volatile unsigned* flag) {
  while (*flag == 0) {
  }
}

__global__ void set_flag(volatile unsigned* flag) {
  *flag = 1;
  __threadfence();
}

// Each counts the texels that are not `value`.
__global__ void read_line(cudaTextureObject_t texture, int width, unsigned value, unsigned* wrong) {
  for (int x = static_cast<int>(first()); x < width; x += static_cast<int>(step()))
    if (tex1Dfetch<unsigned char>(texture, x) != value) atomicAdd(wrong, 1u);
}

__global__ void read_plane(cudaTextureObject_t texture, int width, int height, unsigned value, unsigned* wrong) {
  for (int i = static_cast<int>(first()); i < width * height; i += static_cast<int>(step()))
    if (tex2D<unsigned char>(texture, i % width, i / width) != value) atomicAdd(wrong, 1u);
}
}
