// Contexts: who is current, guards that leave no trace, and where streams belong.
#include "device/context.h"

#include "tests/catch.h"
#include "tests/device/driver.h"

namespace gpupool::test {

TEST_CASE("a guard makes its context current and puts back what was", "[context]") {
  CUcontext second = nullptr;
  REQUIRE(driver().cuCtxCreate_v2(&second, 0, driver().device) == CUDA_SUCCESS);
  CHECK(current_context(driver().api) == second);
  {
    const ContextGuard outer(driver().api, driver().context);
    CHECK(outer.ok());
    CHECK(current_context(driver().api) == driver().context);
    {
      const ContextGuard inner(driver().api, driver().context);
      CHECK(current_context(driver().api) == driver().context);
    }
    CHECK(current_context(driver().api) == driver().context);
  }
  CHECK(current_context(driver().api) == second);
  CHECK(driver().cuCtxDestroy_v2(second) == CUDA_SUCCESS);
  CHECK(current_context(driver().api) == driver().context);
}

TEST_CASE("a context has an id of its own and a device, current or not", "[context]") {
  CUcontext second = nullptr;
  REQUIRE(driver().cuCtxCreate_v2(&second, 0, driver().device) == CUDA_SUCCESS);
  CUcontext popped = nullptr;
  REQUIRE(driver().api.cuCtxPopCurrent_v2(&popped) == CUDA_SUCCESS);
  CHECK(popped == second);
  CHECK(identify(driver().api, second).id != identify(driver().api, driver().context).id);
  CHECK(identify(driver().api, second) == identify(driver().api, second));
  CHECK(identify(driver().api, nullptr) == ContextIdentity{});
  CUdevice device = -1;
  CHECK(device_of(driver().api, second, device) == CUDA_SUCCESS);
  CHECK(device == driver().device);
  CHECK(current_context(driver().api) == driver().context);
  CHECK(driver().cuCtxDestroy_v2(second) == CUDA_SUCCESS);
}

TEST_CASE("a stream's home is its context, a default stream's the current one", "[context]") {
  const CUstream stream = make_stream();
  const NoContext none;
  const StreamHome home = home_of(driver().api, stream);
  CHECK(home.result == CUDA_SUCCESS);
  CHECK(home.context == driver().context);
  CHECK(home.kind == ContextKind::kRegular);
  CHECK(home_of(driver().api, CU_STREAM_LEGACY).result == CUDA_ERROR_INVALID_CONTEXT);
  const ContextGuard current(driver().api, driver().context);
  CHECK(home_of(driver().api, CU_STREAM_LEGACY).context == driver().context);
  CHECK(home_of(driver().api, nullptr).context == driver().context);
}

TEST_CASE("an active primary context is seen; asking for one that is not does not make it so", "[context]") {
  CHECK(primary_is_active(driver().api, driver().device));
  if (driver().devices < 2) return;
  CHECK_FALSE(primary_is_active(driver().api, 1));
  CHECK_FALSE(primary_is_active(driver().api, 1));
}

}  // namespace gpupool::test
