// Handles that leave the process: what a VmmBacking shares, a SharedRange maps.
#include "device/shared_range.h"

#include <unistd.h>

#include <cstdint>

#include "device/vmm_backing.h"
#include "tests/device/backing_rigs.h"

namespace gpupool::test {
namespace {

CUresult refuse_shareable(CUmemGenericAllocationHandle* handle, std::size_t bytes, const CUmemAllocationProp* wanted,
                          unsigned long long flags) {
  if (wanted->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_PERMITTED;
  return driver().api.cuMemCreate(handle, bytes, wanted, flags);
}

}  // namespace

TEST_CASE("shared handles are the same memory, side by side", "[shared_range]") {
  const DriverApi& api = driver().api;
  VmmBacking backing(api, driver().context, driver().device);
  if (!backing.shareable()) {
    WARN("the device has no shareable handles, not tested on this machine");
    return;
  }
  const std::uint64_t unit = backing.granularity();
  std::uint64_t place = 0;
  REQUIRE(backing.reserve(2 * unit, place).ok());
  SharedRange range(api);
  REQUIRE(range.reserve(2 * unit) == CUDA_SUCCESS);
  Handle handles[2];
  for (std::uint64_t i = 0; i < 2; ++i) {
    REQUIRE(backing.create(unit, Location::kDevice, handles[i]).ok());
    REQUIRE(backing.map(handles[i], place + i * unit).ok());
    int descriptor = -1;
    REQUIRE(backing.share(handles[i], descriptor).ok());
    CHECK(range.add(descriptor, unit) == CUDA_SUCCESS);
    CHECK(range.add(descriptor, 2 * unit) == CUDA_ERROR_INVALID_VALUE);  // more than there is room for
    CHECK(close(descriptor) == 0);
  }
  CHECK(range.open_to(driver().device) == CUDA_SUCCESS);
  for (const std::uint64_t at : {std::uint64_t{0}, unit - 4, unit, 2 * unit - 4}) {
    const auto written = static_cast<std::uint32_t>(at + 7);
    std::uint32_t seen = 0;
    CHECK(driver().cuMemcpyHtoD_v2(place + at, &written, sizeof written) == CUDA_SUCCESS);
    CHECK(driver().cuMemcpyDtoH_v2(&seen, range.begin() + at, sizeof seen) == CUDA_SUCCESS);
    CHECK(seen == written);
  }
  range.close();
  CHECK(range.bytes() == 0);
  for (std::uint64_t i = 0; i < 2; ++i) {
    CHECK(backing.unmap(handles[i], place + i * unit).ok());
    backing.destroy(handles[i]);
  }
  backing.unreserve(place, 2 * unit);
}

TEST_CASE("where shareable handles are refused, plain ones are made", "[shared_range]") {
  DriverApi strict = driver().api;
  strict.cuMemCreate = refuse_shareable;
  VmmBacking backing(strict, driver().context, driver().device);
  Handle handle;
  REQUIRE(backing.create(backing.granularity(), Location::kDevice, handle).ok());
  CHECK_FALSE(backing.shareable());
  int descriptor = -1;
  CHECK(backing.share(handle, descriptor).code == CUDA_ERROR_NOT_SUPPORTED);
  backing.destroy(handle);
  DriverApi old = driver().api;
  old.cuMemImportFromShareableHandle = nullptr;
  CHECK_FALSE(VmmBacking(old, driver().context, driver().device).shareable());
}

}  // namespace gpupool::test
