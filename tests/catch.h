// The one place that knows which Catch2 is installed: version 2 (Debian 12) or 3 (Ubuntu 24.04 and later).
#pragma once
#ifdef GPUPOOL_CATCH2_V3
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
