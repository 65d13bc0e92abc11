// Takes most of the card as a framework does that reserves its memory once: 75 % of what cuMemGetInfo calls free, first
// as the first call of the process, then after other blocks, then as memory of its own by cuMemCreate when the pool
// holds it all.
//   most    prints "most: done"; a request that is refused ends it
#include "tests/gpu/gpu.h"

namespace {

std::size_t most_of_the_free() {
  std::size_t free = 0, total = 0;
  MUST(cuMemGetInfo(&free, &total));
  return free / 4 * 3;
}

void take(std::size_t bytes) {
  CUdeviceptr block = 0;
  MUST(cuMemAlloc(&block, bytes));
  unsigned char ends[2] = {};
  MUST(cuMemsetD8(block, 7, 1));
  MUST(cuMemsetD8(block + bytes - 1, 9, 1));
  MUST(cuMemcpyDtoH(ends, block, 1));
  MUST(cuMemcpyDtoH(ends + 1, block + bytes - 1, 1));
  if (ends[0] != 7 || ends[1] != 9) gpu::must(CUDA_ERROR_UNKNOWN, "what was written", __LINE__);
  MUST(cuMemFree(block));
}

}  // namespace

int main() {
  CUcontext context = nullptr;
  MUST(cuInit(0));
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  take(most_of_the_free());
  CUdeviceptr small[64] = {};
  for (CUdeviceptr& block : small) MUST(cuMemAlloc(&block, std::size_t{1} << 20));
  for (int i = 0; i < 64; i += 2) MUST(cuMemFree(small[i]));
  take(most_of_the_free());

  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  std::size_t step = 0;
  MUST(cuMemGetAllocationGranularity(&step, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CUmemGenericAllocationHandle own = 0;
  MUST(cuMemCreate(&own, most_of_the_free() / step * step, &properties, 0));
  MUST(cuMemRelease(own));
  take(most_of_the_free());
  std::printf("most: done\n");
  return 0;
}
