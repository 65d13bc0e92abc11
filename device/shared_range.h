// Another process's handles, mapped side by side on addresses of our own: what an importer has of a VmmBacking. Made
// empty, filled in order, closed once. Its owner keeps the calls apart; no call needs a current context or waits for
// the GPU. The destructor makes no driver call.
#pragma once

#include <cstddef>

#include "device/driver_api.h"

namespace gpupool {

class SharedRange {
 public:
  explicit SharedRange(const DriverApi& api) : api_(api) {}
  SharedRange(const SharedRange&) = delete;
  SharedRange& operator=(const SharedRange&) = delete;

  /// Addresses for `bytes`, a multiple of the handles' unit.
  CUresult reserve(std::size_t bytes);
  /// Maps the memory behind `descriptor`, `bytes` in all, behind what is mapped already. The descriptor stays the
  /// caller's.
  CUresult add(int descriptor, std::size_t bytes);
  /// Lets `device` use all that is mapped.
  CUresult open_to(CUdevice device);
  /// Unmaps everything and gives the addresses back.
  void close();

  CUdeviceptr begin() const { return begin_; }
  std::size_t bytes() const { return bytes_; }

 private:
  const DriverApi& api_;
  CUdeviceptr begin_ = 0;
  std::size_t bytes_ = 0;
  std::size_t mapped_ = 0;
};

}  // namespace gpupool
