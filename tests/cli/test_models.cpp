// The models of other allocators against what their sources say, on sequences small enough to follow by hand.
#include "cli/models/model.h"
#include "cli/trace/trace.h"
#include "tests/catch.h"

using namespace gpupool;
using namespace gpupool::cli;

TEST_CASE("PyTorch: segments of 2 MiB, 20 MiB, or of the request") {
  const auto model = make_pytorch(1_TiB, 0);
  CHECK(model->allocate(0, 1, 0));
  CHECK(model->reserved() == 2_MiB);
  CHECK(model->allocate(1, 1_MiB, 0));  // the rest of the same segment
  CHECK(model->reserved() == 2_MiB);
  CHECK(model->allocate(2, 1_MiB + 1, 0));
  CHECK(model->reserved() == 22_MiB);
  CHECK(model->allocate(3, 9_MiB, 0));  // out of the 20 MiB
  CHECK(model->reserved() == 22_MiB);
  CHECK(model->allocate(4, 10_MiB, 0));  // the 10 MiB left are no longer whole
  CHECK(model->reserved() == 32_MiB);
  CHECK(model->allocate(5, 11_MiB, 0));
  CHECK(model->reserved() == 44_MiB);
  CHECK(model->allocate(6, 1, 1));  // another stream
  CHECK(model->reserved() == 46_MiB);
}

TEST_CASE("PyTorch: large blocks keep a rest of up to 1 MiB, segments never merge") {
  const auto model = make_pytorch(1_TiB, 0);
  CHECK(model->allocate(0, 12_MiB, 0));
  CHECK(model->allocate(1, 12_MiB, 0));
  model->free(0, 0);
  model->free(1, 0);
  CHECK(model->allocate(2, 11_MiB, 0));  // takes all 12
  CHECK(model->allocate(3, 10_MiB, 0));  // the other, and leaves 2
  CHECK(model->allocate(4, 2_MiB, 0));
  CHECK(model->reserved() == 24_MiB);
  model->free(2, 0);
  model->free(3, 0);
  model->free(4, 0);
  CHECK(model->allocate(5, 24_MiB, 0));
  CHECK(model->reserved() == 48_MiB);
}

TEST_CASE("PyTorch: a full card takes back what is cached, then refuses") {
  const auto model = make_pytorch(40_MiB, 0);
  CHECK(model->allocate(0, 30_MiB, 0));
  model->free(0, 0);
  CHECK(model->allocate(1, 40_MiB, 0));
  CHECK(model->reserved() == 40_MiB);
  CHECK(model->driver_calls().free == 1);
  CHECK_FALSE(model->allocate(2, 1, 0));
}

TEST_CASE("PyTorch: max_split_size_mb keeps large blocks from smaller requests") {
  const auto model = make_pytorch(1_TiB, 64_MiB);
  CHECK(model->allocate(0, 100_MiB, 0));
  model->free(0, 0);
  CHECK(model->allocate(1, 30_MiB, 0));
  CHECK(model->reserved() == 130_MiB);
  CHECK(model->allocate(2, 70_MiB, 0));  // 100 MiB are more than 20 MiB too many
  CHECK(model->reserved() == 200_MiB);
  CHECK(model->allocate(3, 90_MiB, 0));
  CHECK(model->reserved() == 200_MiB);
}

TEST_CASE("PyTorch expandable: one range grows by pages, and its free end counts") {
  const auto model = make_pytorch_expandable(1_TiB, 0);
  CHECK(model->allocate(0, 12_MiB, 0));
  CHECK(model->reserved() == 20_MiB);
  CHECK(model->allocate(1, 12_MiB, 0));
  CHECK(model->reserved() == 40_MiB);
  model->free(0, 0);
  model->free(1, 0);
  CHECK(model->allocate(2, 50_MiB, 0));
  CHECK(model->reserved() == 60_MiB);
  CHECK(model->allocate(3, 1_MiB, 0));
  CHECK(model->reserved() == 62_MiB);
}

TEST_CASE("PyTorch expandable: a full card takes back whole pages") {
  const auto model = make_pytorch_expandable(40_MiB, 0);
  CHECK(model->allocate(0, 25_MiB, 0));
  model->free(0, 0);
  CHECK(model->allocate(1, 30_MiB, 1));
  CHECK(model->reserved() == 40_MiB);
  CHECK_FALSE(model->allocate(2, 1, 0));
}

TEST_CASE("PaddlePaddle: chunks of at least 8 MiB, requests from their end, neighbours merge") {
  const auto model = make_paddle_auto_growth(1_TiB, 0);
  CHECK(model->allocate(0, 100, 0));
  CHECK(model->reserved() == 8_MiB);
  CHECK(model->allocate(1, 8_MiB - 256, 0));
  CHECK(model->reserved() == 8_MiB);
  CHECK(model->allocate(2, 9_MiB, 0));
  CHECK(model->reserved() == 17_MiB);
  model->free(0, 0);
  model->free(1, 0);
  CHECK(model->allocate(3, 8_MiB, 0));
  CHECK(model->reserved() == 17_MiB);
}
