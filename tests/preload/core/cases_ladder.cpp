// Programs that come to the end of the card's memory: by holes that are no use, and by a step that is larger than the
// card.
#include <algorithm>
#include <random>
#include <vector>

#include "tests/preload/core/kernels.h"

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

}  // namespace

// All the memory in blocks of 32 MiB where larger ones have been, each second one free again: half the card in holes,
// and then a large request.
CASE(fragmented) {
  program::begin();
  std::vector<CUdeviceptr> blocks;
  while (program::free_memory() > 512 * kMiB) blocks.push_back(program::take(128 * kMiB));
  for (const CUdeviceptr each : blocks) OK(cuMemFree(each));
  blocks.clear();
  while (program::free_memory() > 512 * kMiB) blocks.push_back(program::take(32 * kMiB));
  HOLDS(blocks.size() > 64);
  for (std::size_t i = 0; i < blocks.size(); i += 2) OK(cuMemFree(blocks[i]));
  OK(cuCtxSynchronize());
  HOLDS(program::free_memory() > 1536 * kMiB);
  program::take(1280 * kMiB);
}

// Training as frameworks do it: weights by plain requests, what a step leaves behind in the order of a stream, batches
// copied by another stream, an evaluation now and then whose batch is larger than the card. Natively it ends there.
CASE(step_larger_than_the_card) {
  program::begin();
  program::Kernels kernels;
  const CUstream compute = program::new_stream();
  const CUstream copies = program::new_stream();
  std::size_t free = 0;
  std::size_t total = 0;
  OK(cuMemGetInfo(&free, &total));
  struct Kept {
    CUdeviceptr block;
    std::size_t bytes;
    std::uint32_t seed;
  };
  std::vector<Kept> weights;
  std::uint32_t seed = 0;
  const std::size_t share = total / 64;
  for (int i = 0; i < 16; ++i) {
    weights.push_back({program::take(share), share, ++seed});
    kernels.fill(compute, weights.back().block, 4096, seed);
  }
  std::mt19937 random(7);
  CUevent ready = nullptr;
  OK(cuEventCreate(&ready, CU_EVENT_DISABLE_TIMING));
  std::size_t on_host = 0;
  for (int step = 0; step < 12; ++step) {
    const std::size_t wanted = step % 4 == 3 ? total + total / 8 : total / 2;
    std::vector<Kept> kept;
    std::size_t live = 0;
    std::size_t on_card = weights.size() * share;
    while (live < wanted) {
      const std::size_t bytes = share / 4 + random() % share;
      const CUdeviceptr batch = program::take_ordered(kMiB, copies);
      kernels.fill(copies, batch, 4096, seed);
      OK(cuEventRecord(ready, copies));
      OK(cuStreamWaitEvent(compute, ready, 0));
      kept.push_back({program::take_ordered(bytes, compute), bytes, ++seed});
      if (kept.back().block == 0) return;  // said already
      kernels.fill(compute, kept.back().block, 4096, seed);
      kernels.fill(compute, kept.back().block + bytes / 2, 4096, seed);
      OK(cuMemFreeAsync(batch, compute));
      live += bytes;
      const bool is_host =
          program::attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, kept.back().block) == CU_MEMORYTYPE_HOST;
      EQUAL(program::attribute<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, kept.back().block), 0);
      (is_host ? on_host : on_card) += bytes;
      OK(cuMemGetInfo(&free, &total));
      HOLDS(free + on_card <= total);
    }
    for (auto each = kept.rbegin(); each != kept.rend(); ++each) {
      kernels.check(compute, each->block, 4096, each->seed);
      kernels.check(compute, each->block + each->bytes / 2, 4096, each->seed);
      OK(cuMemFreeAsync(each->block, compute));
    }
  }
  for (const Kept& weight : weights) kernels.check(compute, weight.block, 4096, weight.seed);
  HOLDS(on_host > 0);
  EQUAL(kernels.wrong_bytes(), 0u);
  for (const Kept& weight : weights) OK(cuMemFree(weight.block));
}
