// See shared_range.h.
#include "device/shared_range.h"

#include <cstdint>

namespace gpupool {

CUresult SharedRange::reserve(std::size_t bytes) {
  const CUresult result = api_.cuMemAddressReserve(&begin_, bytes, 0, 0, 0);
  if (result == CUDA_SUCCESS) bytes_ = bytes;
  return result;
}

CUresult SharedRange::add(int descriptor, std::size_t bytes) {
  if (bytes > bytes_ - mapped_) return CUDA_ERROR_INVALID_VALUE;
  CUmemGenericAllocationHandle handle = 0;
  CUresult result =
      api_.cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)),
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  if (result != CUDA_SUCCESS) return result;
  result = api_.cuMemMap(begin_ + mapped_, bytes, 0, handle, 0);
  api_.cuMemRelease(handle);  // the mapping keeps the memory
  if (result == CUDA_SUCCESS) mapped_ += bytes;
  return result;
}

CUresult SharedRange::open_to(CUdevice device) {
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return api_.cuMemSetAccess(begin_, mapped_, &access, 1);
}

void SharedRange::close() {
  if (mapped_ != 0) api_.cuMemUnmap(begin_, mapped_);
  if (bytes_ != 0) api_.cuMemAddressFree(begin_, bytes_);
  begin_ = bytes_ = mapped_ = 0;
}

}  // namespace gpupool
