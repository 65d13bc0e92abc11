// See watch.h: how large an array is. Tiling and mip levels are the driver's secret; this is the payload of the first
// level.
#include "preload/watch.h"

#include <algorithm>

namespace gpupool {
namespace {

std::uint64_t element_bytes(CUarray_format format, unsigned channels) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return channels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return std::uint64_t{channels} * 2;
    default:
      return std::uint64_t{channels} * 4;  // 32 bits, and the compressed and planar formats as if they were
  }
}

}  // namespace

std::uint64_t array_bytes(const CUDA_ARRAY_DESCRIPTOR* array) {
  return array
             ? element_bytes(array->Format, array->NumChannels) * array->Width * std::max<std::size_t>(array->Height, 1)
             : 0;
}

std::uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR* array) {
  if (!array) return 0;
  return element_bytes(array->Format, array->NumChannels) * array->Width * std::max<std::size_t>(array->Height, 1) *
         std::max<std::size_t>(array->Depth, 1);
}

}  // namespace gpupool
