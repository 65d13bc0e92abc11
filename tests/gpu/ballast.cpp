// Holds the card, so that others find it nearly full.
//   ballast MIB     leaves at most MIB MiB of what cuMemGetInfo calls free
// Prints what it leaves, in MiB, and holds the rest until its standard input ends.
#include "tests/gpu/gpu.h"

namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;

std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  MUST(cuMemGetInfo(&free, &total));
  return free;
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 2;
  const std::size_t left = std::strtoul(words[1], nullptr, 10) * kMib;
  CUcontext context = nullptr;
  MUST(cuInit(0));
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  for (std::size_t piece = std::size_t{1} << 30; piece >= 2 * kMib; piece /= 2) {
    for (CUdeviceptr block = 0; free_bytes() >= left + piece && cuMemAlloc(&block, piece) == CUDA_SUCCESS;) {
    }
  }
  std::printf("%zu\n", free_bytes() / kMib);
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
