// What the backing contract needs of the backing under test beside the interface: whether its memory can be used.
#pragma once

#include <vector>

#include "device/arena_backing.h"
#include "device/vmm_backing.h"
#include "pool/memory_backing.h"
#include "tests/catch.h"
#include "tests/device/driver.h"

namespace gpupool::test {

/// Writes and reads the first and the last word of a piece of device memory.
class CudaMemory {
 public:
  void mark(std::uint64_t address, std::uint64_t bytes, std::uint32_t value) {
    const std::uint32_t last = ~value;
    REQUIRE(driver().cuMemcpyHtoD_v2(address, &value, sizeof value) == CUDA_SUCCESS);
    REQUIRE(driver().cuMemcpyHtoD_v2(address + bytes - sizeof last, &last, sizeof last) == CUDA_SUCCESS);
  }
  bool marked(std::uint64_t address, std::uint64_t bytes, std::uint32_t value) {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    REQUIRE(driver().cuMemcpyDtoH_v2(&first, address, sizeof first) == CUDA_SUCCESS);
    REQUIRE(driver().cuMemcpyDtoH_v2(&last, address + bytes - sizeof last, sizeof last) == CUDA_SUCCESS);
    return first == value && last == ~value;
  }
};

struct VmmRig : CudaMemory {
  VmmBacking backing{driver().api, driver().context, driver().device};
};

struct ArenaRig : CudaMemory {
  ArenaBacking backing{driver().api, driver().context};
};

/// The memory backing has no bytes: it answers for the range, and the test's marks are taken on trust.
template <Placement kPlacement>
struct BooksRig {
  MemoryBacking backing{{.placement = kPlacement}};
  ~BooksRig() { CHECK(backing.broken_rule() == nullptr); }
  void mark(std::uint64_t address, std::uint64_t bytes, std::uint32_t) { REQUIRE(backing.usable(address, bytes)); }
  bool marked(std::uint64_t address, std::uint64_t bytes, std::uint32_t) { return backing.usable(address, bytes); }
};
using ChosenBooksRig = BooksRig<Placement::kChosen>;
using GivenBooksRig = BooksRig<Placement::kGiven>;

}  // namespace gpupool::test
