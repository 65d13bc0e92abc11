// Work that is submitted after a free must not hold up the one who gets the memory: here it waits for a flag that only
// the new owner's work sets, so a wait for it would never end. Natively each of these ends; so it must with the pool.
//   no_hang IMAGE plain|plain_threads|ordered|ordered_new_stream    prints "no_hang: done", or "wrong" if the block's
//                                                                   bytes are
// plain_threads: the work before the free waits for what another thread submits a moment later, which nothing of ours
// may hold up. ordered_new_stream: the new owner is a stream that has never allocated before.
#include <chrono>
#include <cstring>
#include <thread>

#include "tests/gpu/gpu.h"

namespace {

constexpr std::uint64_t kBytes = std::uint64_t{8} << 20;

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  gpu::Gpu gpu(words[1]);
  const bool threads = std::strcmp(words[2], "plain_threads") == 0;
  const bool plain = threads || std::strcmp(words[2], "plain") == 0;
  const bool seen_before = std::strcmp(words[2], "ordered") == 0;
  const CUstream first = gpu.make_stream();
  const CUstream second = gpu.make_stream();
  const auto allocate = [plain](std::uint64_t bytes, CUstream stream) {
    CUdeviceptr at = 0;
    MUST(plain ? cuMemAlloc(&at, bytes) : cuMemAllocAsync(&at, bytes, stream));
    return at;
  };
  const auto release = [plain](CUdeviceptr at, CUstream stream) {
    MUST(plain ? cuMemFree(at) : cuMemFreeAsync(at, stream));
  };

  if (seen_before) release(allocate(512, second), second);
  // A neighbour on each side, so that the hole between them is the best fit.
  allocate(4096, first);
  const CUdeviceptr before = allocate(kBytes, first);
  allocate(4096, first);
  gpu.fill(before, kBytes, 1, first);
  std::thread other;
  if (threads) {
    gpu.wait_flag(first);
    other = std::thread([&gpu, third = gpu.make_stream()] {
      gpu.use_here();
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      gpu.set_flag(third);
    });
  }
  release(before, first);
  if (!threads) gpu.wait_flag(first);
  const CUdeviceptr after = allocate(kBytes, second);
  gpu.fill(after, kBytes, 2, second);
  gpu.check(after, kBytes, 2, second);
  if (threads)
    other.join();
  else
    gpu.set_flag(second);
  MUST(cuCtxSynchronize());
  std::printf("no_hang: %s\n", gpu.wrong() == 0 ? "done" : "wrong");
  return 0;
}
