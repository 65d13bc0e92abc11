// What only slabs of cuMemAlloc can get wrong: captures, and whose context the memory belongs to.
#include "device/arena_backing.h"

#include "tests/device/backing_rigs.h"

namespace gpupool::test {

TEST_CASE("a slab can be had and given back in a capture of any mode, and the capture survives", "[arena]") {
  const auto mode =
      GENERATE(CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED);
  ArenaBacking backing(driver().api, driver().context);
  const CUstream stream = make_stream();
  REQUIRE(driver().cuStreamBeginCapture_v2(stream, mode) == CUDA_SUCCESS);
  Handle handle;
  CHECK(backing.create(backing.granularity(), Location::kDevice, handle).ok());
  backing.destroy(handle);
  CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  REQUIRE(driver().api.cuThreadExchangeStreamCaptureMode(&thread_mode) == CUDA_SUCCESS);
  CHECK(thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
  CUgraph graph = nullptr;
  CHECK(driver().cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
  driver().cuGraphDestroy(graph);
}

TEST_CASE("a slab belongs to the backing's context, whatever is current", "[arena]") {
  ArenaBacking backing(driver().api, driver().context);
  Handle handle;
  {
    const NoContext none;
    REQUIRE(backing.create(backing.granularity(), Location::kDevice, handle).ok());
  }
  CUcontext owner = nullptr;
  CHECK(driver().api.cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, handle.address) == CUDA_SUCCESS);
  CHECK(owner == driver().context);
  backing.destroy(handle);
}

}  // namespace gpupool::test
