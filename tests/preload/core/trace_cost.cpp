// What a record costs the program: pairs of cuMemAllocAsync and cuMemFreeAsync through the preload, in bursts with
// pauses between them, as a program with kernels makes them. Run it with and without GPUPOOL_TRACE_PATH; a pair is two
// records. Prints the median and the least burst, in nanoseconds a pair. Not a test: docs/benchmarks/traces.md says how
// it is used; scripts/check-instructions counts the instructions of one burst.
//   preload_trace_cost [BURSTS [plain]]    plain: cuMemAlloc and cuMemFree
#include <cuda.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr unsigned kBursts = 60;
constexpr unsigned kPairs = 20'000;  // check-instructions knows
constexpr useconds_t kPause = 25'000;

std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::uint64_t(now.tv_sec) * 1'000'000'000 + std::uint64_t(now.tv_nsec);
}

bool ok(CUresult result) { return result == CUDA_SUCCESS; }

bool pair(CUstream stream) {
  CUdeviceptr block = 0;
  return ok(cuMemAllocAsync(&block, 4096, stream)) && ok(cuMemFreeAsync(block, stream));
}

bool plain_pair() {
  CUdeviceptr block = 0;
  return ok(cuMemAlloc(&block, 4096)) && ok(cuMemFree(block));
}

}  // namespace

// Its name is what check-instructions looks for.
[[gnu::noinline]] bool pairs_of_a_burst(CUstream stream, bool plain) {
  for (unsigned i = 0; i < kPairs; ++i) {
    if (!(plain ? plain_pair() : pair(stream))) return false;
  }
  return true;
}

int main(int count, char** words) {
  const unsigned wanted = count > 1 ? static_cast<unsigned>(std::strtoul(words[1], nullptr, 10)) : kBursts;
  const bool plain = count > 2;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr warm = 0;
  if (!ok(cuInit(0)) || !ok(cuDevicePrimaryCtxRetain(&context, 0)) || !ok(cuCtxSetCurrent(context)) ||
      !ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)) || !ok(cuMemAllocAsync(&warm, 1 << 20, stream)))
    return EXIT_FAILURE;
  std::vector<double> bursts;
  for (unsigned burst = 0; burst < wanted; ++burst) {
    usleep(kPause);
    const std::uint64_t begin = now_ns();
    if (!pairs_of_a_burst(stream, plain)) return EXIT_FAILURE;
    bursts.push_back(double(now_ns() - begin) / kPairs);
  }
  if (bursts.empty()) return EXIT_FAILURE;
  std::sort(bursts.begin(), bursts.end());
  std::printf("%.1f ns a pair (median), %.1f (least)\n", bursts[bursts.size() / 2], bursts[0]);
}
