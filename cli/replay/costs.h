// What calls to the driver cost on the host, in microseconds: medians on an H200 with driver 580, CUDA 13.0, each for
// the call and for each GiB. The ratios matter, not the last digit. Constants, and the sum that replay reports as
// driver_us.
#pragma once
#include <cstdint>

namespace gpupool::cli {

struct DriverCalls {
  std::uint64_t create = 0;  // cuMemCreate
  std::uint64_t map = 0;     // cuMemMap and cuMemSetAccess
  std::uint64_t unmap = 0;
  std::uint64_t release = 0;
  std::uint64_t record = 0;
  std::uint64_t wait = 0;
  std::uint64_t query = 0;
  std::uint64_t allocate = 0;  // cuMemAlloc
  std::uint64_t free = 0;      // cuMemFree
  std::uint64_t created = 0;   // bytes, of these calls
  std::uint64_t mapped = 0;
  std::uint64_t unmapped = 0;
  std::uint64_t released = 0;

  std::uint64_t count() const {
    return create + 2 * map + unmap + release + record + wait + query + allocate + free;  // map stands for two calls
  }

  double microseconds() const {
    constexpr double kGiB = double(std::uint64_t{1} << 30);
    const double large =
        8.0 * double(created) + 36.0 * double(mapped) + 12.0 * double(unmapped) + 290.0 * double(released);
    return large / kGiB + 21.0 * double(create) + (0.7 + 22.0) * double(map) + 15.0 * double(unmap) +
           14.0 * double(release) + 0.2 * double(record) + 0.16 * double(wait) + 0.23 * double(query) +
           32.0 * double(allocate) + 30.0 * double(free);
  }
};

}  // namespace gpupool::cli
