// Which executables get a pool.
#include "config/processes.h"

#include "tests/catch.h"

using namespace gpupool;

TEST_CASE("executables are matched by name", "[config]") {
  CHECK(gets_pool({}, "/usr/bin/python3.11"));
  const ProcessOptions some{.include = {"python*", "train"}, .exclude = {"python2*"}};
  CHECK(gets_pool(some, "/opt/env/bin/python3.11"));
  CHECK(gets_pool(some, "train"));
  CHECK_FALSE(gets_pool(some, "trainer"));
  CHECK_FALSE(gets_pool(some, "/usr/bin/python2.7"));
  CHECK_FALSE(gets_pool(some, "/python3/nvidia-smi"));
  CHECK_FALSE(gets_pool(some, ""));
  CHECK_FALSE(gets_pool({.include = {}, .exclude = {}}, "python"));
  CHECK(gets_pool({.include = {"a[0-9]"}, .exclude = {}}, "a7"));
}
