// The calls that exist in the driver and in the runtime: allocation, free, free memory. Everything else is asked of the
// driver in both cases, because its handles are the runtime's too. Results are plain numbers: those of both agree.
#pragma once

#include <memory>
#include <string>

#include "tests/differential/driver.h"

namespace differential {

class Api {
 public:
  virtual ~Api() = default;
  virtual int alloc(CUdeviceptr* out, std::size_t bytes) = 0;
  virtual int alloc_pitch(CUdeviceptr* out, std::size_t* pitch, std::size_t width, std::size_t height) = 0;
  virtual int alloc_3d(CUdeviceptr* out, std::size_t* pitch, std::size_t width, std::size_t height,
                       std::size_t depth) = 0;
  virtual int alloc_async(CUdeviceptr* out, std::size_t bytes, CUstream stream) = 0;
  virtual int alloc_from_pool(CUdeviceptr* out, std::size_t bytes, CUmemoryPool pool, CUstream stream) = 0;
  virtual int free(CUdeviceptr block) = 0;
  virtual int free_async(CUdeviceptr block, CUstream stream) = 0;
  virtual int info(std::size_t* free, std::size_t* total) = 0;
  /// Makes the calling thread ready; resets the device.
  virtual int start() = 0;
  virtual int reset() = 0;
  /// Ends the primary context by giving back all that this program holds of it; not where the runtime holds it too.
  virtual bool may_release() const = 0;
  virtual int release_all() = 0;
  /// Read and cleared; 0 where there is no such thing.
  virtual int last_error() = 0;
};

std::unique_ptr<Api> driver_api();
/// `path` is that of a libcudart.so.
std::unique_ptr<Api> runtime_api(const std::string& path);

}  // namespace differential
