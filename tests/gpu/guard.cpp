// What pool.guard=on has to find on a card, and what it must not disturb: two streams fill and check blocks of many
// sizes, one kernel writes behind the end of its block, and freed bytes are read.
//   guard IMAGE plain|ordered [stale]    stale: also reads freed memory, which only a pool keeps mapped
// Prints "guard: wrong N", with stale ", poisoned N of N", and on stderr the block that was overrun.
#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <vector>

#include "tests/gpu/gpu.h"

namespace {

constexpr std::uint64_t kShort = 5000;
constexpr std::uint64_t kBehind = 16;  // bytes of the overrun

class Program {
 public:
  Program(const char* image, bool ordered) : gpu_(image), ordered_(ordered) {}

  CUdeviceptr allocate(std::uint64_t bytes, CUstream stream) {
    CUdeviceptr at = 0;
    MUST(ordered_ ? cuMemAllocAsync(&at, bytes, stream) : cuMemAlloc(&at, bytes));
    return at;
  }
  void release(CUdeviceptr at, CUstream stream) { MUST(ordered_ ? cuMemFreeAsync(at, stream) : cuMemFree(at)); }

  std::uint32_t play_right() {
    for (std::uint32_t round = 0; round < 200; ++round) {
      const CUstream stream = streams_[round % 2];
      const std::uint64_t bytes = 1 + round * std::uint64_t{1'048'573} % 3'000'000;
      const CUdeviceptr block = allocate(bytes, stream);
      gpu_.fill(block, bytes, round, stream);
      gpu_.spin(50, stream);
      gpu_.check(block, bytes, round, stream);
      release(block, stream);
    }
    MUST(cuCtxSynchronize());
    return gpu_.wrong();
  }
  void overrun() {
    const CUdeviceptr block = allocate(kShort, streams_[0]);
    std::fprintf(stderr, "overruns 0x%" PRIx64 "\n", std::uint64_t{block});
    gpu_.fill(block, kShort + kBehind, 1, streams_[0]);
    release(block, streams_[0]);
    MUST(cuCtxSynchronize());
  }
  std::size_t poisoned(std::vector<unsigned char>& bytes) {
    const CUdeviceptr block = allocate(bytes.size(), streams_[1]);
    gpu_.fill(block, bytes.size(), 2, streams_[1]);
    release(block, streams_[1]);
    MUST(cuCtxSynchronize());
    MUST(cuMemcpyDtoH(bytes.data(), block, bytes.size()));
    return static_cast<std::size_t>(std::ranges::count(bytes, 0xFF));
  }

 private:
  gpu::Gpu gpu_;
  bool ordered_;
  CUstream streams_[2] = {gpu_.make_stream(), gpu_.make_stream()};
};

}  // namespace

int main(int count, char** words) {
  if (count < 3) return 2;
  Program program(words[1], std::strcmp(words[2], "ordered") == 0);
  const std::uint32_t wrong = program.play_right();
  program.overrun();
  std::printf("guard: wrong %u", wrong);
  if (count > 3) {
    std::vector<unsigned char> bytes(4000);
    const std::size_t poisoned = program.poisoned(bytes);
    std::printf(", poisoned %zu of %zu", poisoned, bytes.size());
  }
  std::printf("\n");
  return 0;
}
