// What a program waits for at its beginning.
//   startup BYTES    asks for 1 MiB, then for BYTES in one block
// Prints one JSON object: milliseconds of the first call, of the first allocation, of the large one, and the clock when
// main ends, so that who started the program can tell what its end takes.
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 2;
  const auto start = Clock::now();
  if (cudaFree(nullptr) != cudaSuccess) return 1;
  const double first_call = milliseconds_since(start);
  void* block = nullptr;
  const auto before = Clock::now();
  if (cudaMalloc(&block, 1 << 20) != cudaSuccess) return 1;
  const double first_allocation = milliseconds_since(before);
  const auto before_large = Clock::now();
  if (cudaMalloc(&block, std::strtoull(words[1], nullptr, 10)) != cudaSuccess) return 1;
  const double large = milliseconds_since(before_large);
  std::printf("{\"first_call_ms\": %.3f, \"first_allocation_ms\": %.3f, \"large_ms\": %.3f, \"end_s\": %.6f}\n",
              first_call, first_allocation, large,
              std::chrono::duration<double>(Clock::now().time_since_epoch()).count());
  std::fflush(stdout);
  return 0;
}
