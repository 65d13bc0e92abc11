// Texture objects on blocks of every size from 1 byte: linear ones on memory of cuMemAlloc and cuMemAllocAsync, 2D ones
// on rows of cuMemAllocPitch, each read by a kernel, all alive at once.
//   textures IMAGE LAST    sizes 1 to LAST; prints how many there were and how many texels were wrong
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "tests/gpu/gpu.h"

namespace {

constexpr unsigned kHeight = 3;

struct Texture {
  CUdeviceptr block;
  CUtexObject object;
};

CUtexObject texture_on(const CUDA_RESOURCE_DESC& resource) {
  CUDA_TEXTURE_DESC how{};
  how.flags = CU_TRSF_READ_AS_INTEGER;
  std::fill_n(how.addressMode, 3, CU_TR_ADDRESS_MODE_CLAMP);
  CUtexObject object = 0;
  MUST(cuTexObjectCreate(&object, &resource, &how, nullptr));
  return object;
}

void launch(CUfunction kernel, void** parameters) {
  MUST(cuLaunchKernel(kernel, 4, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr));
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  gpu::Gpu gpu(words[1]);
  const unsigned last = static_cast<unsigned>(std::atoi(words[2]));
  CUmodule module = nullptr;
  CUfunction read_line = nullptr, read_plane = nullptr;
  MUST(cuModuleLoad(&module, words[1]));
  MUST(cuModuleGetFunction(&read_line, module, "read_line"));
  MUST(cuModuleGetFunction(&read_plane, module, "read_plane"));
  CUdeviceptr wrong_at = 0;
  MUST(cuMemAlloc(&wrong_at, sizeof(unsigned)));
  MUST(cuMemsetD32(wrong_at, 0, 1));

  std::vector<Texture> plain, ordered, planes;
  for (unsigned width = 1; width <= last; ++width) {
    const auto value = static_cast<unsigned char>(width % 251 + 1);
    unsigned shown = value;
    for (std::vector<Texture>* all : {&plain, &ordered}) {
      Texture texture{};
      MUST(all == &plain ? cuMemAlloc(&texture.block, width) : cuMemAllocAsync(&texture.block, width, nullptr));
      MUST(cuMemsetD8Async(texture.block, value, width, nullptr));
      CUDA_RESOURCE_DESC resource{};
      resource.resType = CU_RESOURCE_TYPE_LINEAR;
      resource.res.linear = {texture.block, CU_AD_FORMAT_UNSIGNED_INT8, 1, width};
      texture.object = texture_on(resource);
      void* parameters[] = {&texture.object, &width, &shown, &wrong_at};
      launch(read_line, parameters);
      all->push_back(texture);
    }
    Texture plane{};
    std::size_t pitch = 0;
    MUST(cuMemAllocPitch(&plane.block, &pitch, width, kHeight, 4));
    MUST(cuMemsetD2D8Async(plane.block, pitch, value, width, kHeight, nullptr));
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_PITCH2D;
    resource.res.pitch2D = {plane.block, CU_AD_FORMAT_UNSIGNED_INT8, 1, width, kHeight, pitch};
    plane.object = texture_on(resource);
    unsigned height = kHeight;
    void* parameters[] = {&plane.object, &width, &height, &shown, &wrong_at};
    launch(read_plane, parameters);
    planes.push_back(plane);
  }
  unsigned wrong = 0;
  MUST(cuMemcpyDtoH(&wrong, wrong_at, sizeof wrong));
  for (const std::vector<Texture>* all : {&plain, &ordered, &planes})
    for (const Texture& texture : *all) {
      MUST(cuTexObjectDestroy(texture.object));
      MUST(all == &ordered ? cuMemFreeAsync(texture.block, nullptr) : cuMemFree(texture.block));
    }
  MUST(cuCtxSynchronize());
  std::printf("textures: %zu, wrong texels %u\n", plain.size() + ordered.size() + planes.size(), wrong);
  return 0;
}
