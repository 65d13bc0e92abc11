// Memory that goes from one stream to another while the first still reads it. With fences, or natively, the second
// stream's writes come behind the first one's reads; without, the first stream reads what is not its own. Prints the
// number of wrong bytes for plain and for stream-ordered allocation:
//   race IMAGE ROUNDS
#include <cstdlib>

#include "tests/gpu/gpu.h"

namespace {

enum class Kind { kPlain, kOrdered };

constexpr std::uint64_t kBytes = std::uint64_t{24} << 20;
constexpr std::uint64_t kSpinMicroseconds = 3000;

CUdeviceptr allocate(Kind kind, CUstream stream) {
  CUdeviceptr at = 0;
  MUST(kind == Kind::kPlain ? cuMemAlloc(&at, kBytes) : cuMemAllocAsync(&at, kBytes, stream));
  return at;
}

void release(Kind kind, CUdeviceptr at, CUstream stream) {
  MUST(kind == Kind::kPlain ? cuMemFree(at) : cuMemFreeAsync(at, stream));
}

std::uint32_t play(gpu::Gpu& gpu, Kind kind, int rounds) {
  const CUstream reader = gpu.make_stream();
  const CUstream writer = gpu.make_stream();
  gpu.reset();
  for (int round = 0; round < rounds; ++round) {
    const auto seed = static_cast<std::uint32_t>(2 * round + 1);
    const CUdeviceptr old_block = allocate(kind, reader);
    gpu.fill(old_block, kBytes, seed, reader);
    gpu.spin(kSpinMicroseconds, reader);
    gpu.check(old_block, kBytes, seed, reader);
    release(kind, old_block, reader);
    const CUdeviceptr new_block = allocate(kind, writer);
    gpu.fill(new_block, kBytes, seed + 1, writer);
    gpu.check(new_block, kBytes, seed + 1, writer);
    release(kind, new_block, writer);
    MUST(cuCtxSynchronize());
  }
  MUST(cuStreamDestroy(reader));
  MUST(cuStreamDestroy(writer));
  return gpu.wrong();
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  gpu::Gpu gpu(words[1]);
  const int rounds = std::atoi(words[2]);
  const std::uint32_t plain = play(gpu, Kind::kPlain, rounds);
  const std::uint32_t ordered = play(gpu, Kind::kOrdered, rounds);
  std::printf("race: plain %u ordered %u\n", plain, ordered);
  return 0;
}
