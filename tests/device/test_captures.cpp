// Open captures: the count, whose they are, and how they end.
#include "device/captures.h"

#include <thread>

#include "tests/catch.h"
#include "tests/device/driver.h"

namespace gpupool::test {

using Left = Captures::Left;

TEST_CASE("captures are open from their begin to their own end", "[captures]") {
  Captures captures;
  const auto first = Captures::origin_of(driver().api, make_stream());
  const auto second = Captures::origin_of(driver().api, make_stream());
  CHECK_FALSE(captures.any_open());
  CHECK(captures.ended(first) == Left::kNotTracked);
  captures.began(first);
  captures.began(first);
  captures.began(second);
  CHECK(captures.any_open());
  CHECK(captures.ended(first) == Left::kSomeOpen);
  CHECK(captures.ended(first) == Left::kNotTracked);
  CHECK(captures.any_open());
  CHECK(captures.ended(second) == Left::kNoneOpen);
  CHECK_FALSE(captures.any_open());
}

TEST_CASE("the per-thread default stream is another one in each thread", "[captures]") {
  Captures captures;
  const auto mine = Captures::origin_of(driver().api, CU_STREAM_PER_THREAD);
  CHECK(mine.context == driver().context);
  captures.began(mine);
  Captures::Origin other;
  std::thread([&] {
    driver().cuCtxSetCurrent(driver().context);
    other = Captures::origin_of(driver().api, CU_STREAM_PER_THREAD);
  }).join();
  CHECK(captures.ended(other) == Left::kNotTracked);
  CHECK(captures.ended(mine) == Left::kNoneOpen);
}

TEST_CASE("a context takes its captures with it", "[captures]") {
  Captures captures;
  captures.began(Captures::origin_of(driver().api, make_stream()));
  captures.began(Captures::origin_of(driver().api, CU_STREAM_PER_THREAD));
  CHECK(captures.context_ended(nullptr) == Left::kNotTracked);
  CHECK(captures.context_ended(driver().context) == Left::kNoneOpen);
}

TEST_CASE("a stream knows whether it is captured; asking does not disturb", "[captures]") {
  const CUstream captured = make_stream();
  const CUstream outside = make_stream();
  CHECK_FALSE(is_capturing(driver().api, captured));
  REQUIRE(driver().cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  CHECK(is_capturing(driver().api, captured));
  CHECK_FALSE(is_capturing(driver().api, outside));
  CUgraph graph = nullptr;
  CHECK(driver().cuStreamEndCapture(captured, &graph) == CUDA_SUCCESS);
  driver().cuGraphDestroy(graph);
  CHECK_FALSE(is_capturing(driver().api, captured));
}

}  // namespace gpupool::test
