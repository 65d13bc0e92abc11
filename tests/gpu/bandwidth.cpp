// How fast the card copies between two large blocks, on whatever memory they lie.
//   bandwidth BLOCK COPIES                     two blocks of BLOCK MiB each
//   bandwidth BLOCK COPIES BEFORE LEAST MOST   the same, after BEFORE MiB in blocks of LEAST to MOST MiB came and went
// Prints one JSON object: the median of the copies, in GB/s read and written, and whether the bytes arrived.
#include "tests/gpu/gpu.h"

#include <algorithm>
#include <random>
#include <vector>

namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;
constexpr int kWarmUp = 5;

CUdeviceptr take(std::size_t bytes) {
  CUdeviceptr block = 0;
  MUST(cuMemAlloc(&block, bytes));
  return block;
}

void come_and_go(std::size_t bytes, std::size_t least, std::size_t most) {
  std::mt19937_64 random(1);
  std::vector<CUdeviceptr> blocks;
  for (std::size_t held = 0; held < bytes;) {
    const std::size_t size = least + random() % (most - least + 1);
    blocks.push_back(take(size));
    held += size;
  }
  std::shuffle(blocks.begin(), blocks.end(), random);
  for (CUdeviceptr block : blocks) MUST(cuMemFree(block));
  MUST(cuCtxSynchronize());
}

/// Milliseconds of each copy, by the card's clock.
std::vector<float> copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, int times) {
  CUstream stream = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUevent begin = nullptr, end = nullptr;
  MUST(cuEventCreate(&begin, CU_EVENT_DEFAULT));
  MUST(cuEventCreate(&end, CU_EVENT_DEFAULT));
  std::vector<float> taken;
  for (int i = 0; i < kWarmUp + times; ++i) {
    MUST(cuEventRecord(begin, stream));
    MUST(cuMemcpyDtoDAsync(to, from, bytes, stream));
    MUST(cuEventRecord(end, stream));
    MUST(cuEventSynchronize(end));
    float milliseconds = 0;
    MUST(cuEventElapsedTime(&milliseconds, begin, end));
    if (i >= kWarmUp) taken.push_back(milliseconds);
  }
  return taken;
}

}  // namespace

int main(int count, char** words) {
  if (count != 3 && count != 6) return 2;
  const auto number = [&](int word) { return std::strtoul(words[word], nullptr, 10); };
  const std::size_t bytes = number(1) * kMib;
  CUcontext context = nullptr;
  MUST(cuInit(0));
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  if (count == 6) come_and_go(number(3) * kMib, number(4) * kMib, number(5) * kMib);
  const CUdeviceptr from = take(bytes), to = take(bytes);
  MUST(cuMemsetD8(from, 7, bytes));
  MUST(cuMemsetD8(to, 0, bytes));
  MUST(cuCtxSynchronize());
  std::vector<float> taken = copy(to, from, bytes, static_cast<int>(number(2)));
  std::sort(taken.begin(), taken.end());
  unsigned char ends[2] = {};
  MUST(cuMemcpyDtoH(ends, to, 1));
  MUST(cuMemcpyDtoH(ends + 1, to + bytes - 1, 1));
  std::printf("{\"gb_per_s\": %.1f, \"right\": %s}\n", 2e-6 * static_cast<double>(bytes) / taken[taken.size() / 2],
              ends[0] == 7 && ends[1] == 7 ? "true" : "false");
  return 0;
}
