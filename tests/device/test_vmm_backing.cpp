// What only mapped handles can get wrong: undoing half a map, peers, what a handle is made for.
#include "device/vmm_backing.h"

#include "device/context.h"
#include "tests/device/backing_rigs.h"

namespace gpupool::test {
namespace {

/// Access of a device to an address as the driver knows it: CUmemAccess_flags.
unsigned long long access_of(CUdevice device, std::uint64_t address) {
  const CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, {device}};
  unsigned long long flags = 99;
  REQUIRE(driver().cuMemGetAccess(&flags, &location, address) == CUDA_SUCCESS);
  return flags;
}

/// Handles on a range: two side by side, a gap, one more.
class ThreeHandles {
 public:
  explicit ThreeHandles(VmmBacking& backing) : backing_(backing), unit_(backing.granularity()) {
    REQUIRE(backing.reserve(4 * unit_, range_).ok());
    for (const std::uint64_t place : places()) {
      Handle handle;
      REQUIRE(backing.create(unit_, Location::kDevice, handle).ok());
      REQUIRE(backing.map(handle, place).ok());
      handles_.push_back(handle);
    }
  }
  ~ThreeHandles() {
    for (std::size_t i = 0; i < handles_.size(); ++i) {
      backing_.unmap(handles_[i], places()[i]);
      backing_.destroy(handles_[i]);
    }
    backing_.unreserve(range_, 4 * unit_);
  }
  ThreeHandles(const ThreeHandles&) = delete;
  ThreeHandles& operator=(const ThreeHandles&) = delete;

  std::vector<std::uint64_t> places() const { return {range_, range_ + unit_, range_ + 3 * unit_}; }

 private:
  VmmBacking& backing_;
  std::uint64_t unit_;
  std::uint64_t range_ = 0;
  std::vector<Handle> handles_;
};

bool two_devices() {
  if (driver().devices >= 2) return true;
  WARN("needs two devices, not tested on this machine");
  return false;
}

}  // namespace

TEST_CASE("a device with virtual memory management is supported, a driver without the calls is not", "[vmm]") {
  CHECK(VmmBacking::supported(driver().api, driver().device));
  DriverApi old = driver().api;
  old.cuMemMap = nullptr;
  CHECK_FALSE(VmmBacking::supported(old, driver().device));
}

TEST_CASE("a map whose access is refused leaves nothing mapped", "[vmm]") {
  VmmBacking backing(instrumented(), driver().context, driver().device);
  const std::uint64_t unit = backing.granularity();
  std::uint64_t range = 0;
  Handle handle;
  REQUIRE(backing.reserve(unit, range).ok());
  REQUIRE(backing.create(unit, Location::kDevice, handle).ok());
  refuse(GENERATE(as<std::string>{}, "cuMemSetAccess", "cuMemMap"), 1, CUDA_ERROR_UNKNOWN);
  CHECK(backing.map(handle, range).code == CUDA_ERROR_UNKNOWN);
  CHECK(backing.map(handle, range).ok());
  CHECK_FALSE(backing.map(handle, range).ok());
  CHECK(backing.unmap(handle, range).ok());
  backing.destroy(handle);
  backing.unreserve(range, unit);
}

TEST_CASE("memory comes and goes in a capture and beside running work without disturbing either", "[vmm]") {
  VmmBacking backing(driver().api, driver().context, driver().device);
  const CUstream stream = make_stream();
  REQUIRE(driver().cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  { const ThreeHandles handles(backing); }
  CHECK(backing.card_memory().total > 0);
  CUgraph graph = nullptr;
  CHECK(driver().cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
  driver().cuGraphDestroy(graph);
}

TEST_CASE("a peer reaches what is mapped already and what is mapped later, until it is removed", "[vmm][peer]") {
  if (!two_devices()) return;
  VmmBacking backing(instrumented(), driver().context, driver().device);
  const ThreeHandles before(backing);
  reset_instruments();
  REQUIRE(backing.add_peer(1).ok());
  CHECK(calls("cuMemSetAccess") == 2);  // one for the two side by side, one behind the gap
  REQUIRE(backing.add_peer(1).ok());
  CHECK(calls("cuMemSetAccess") == 2);
  const ThreeHandles after(backing);
  for (const ThreeHandles* handles : {&before, &after}) {
    for (const std::uint64_t place : handles->places()) {
      CHECK(access_of(0, place) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
      CHECK(access_of(1, place) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    }
  }
  backing.remove_peer(1);
  for (const std::uint64_t place : before.places()) {
    CHECK(access_of(0, place) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CHECK(access_of(1, place) == CU_MEM_ACCESS_FLAGS_PROT_NONE);
  }
  const ThreeHandles alone(backing);
  CHECK(access_of(1, alone.places()[0]) == CU_MEM_ACCESS_FLAGS_PROT_NONE);
}

TEST_CASE("a peer that is refused halfway has no access at all", "[vmm][peer]") {
  if (!two_devices()) return;
  VmmBacking backing(instrumented(), driver().context, driver().device);
  const ThreeHandles handles(backing);
  refuse("cuMemSetAccess", 2, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  CHECK(backing.add_peer(1).code == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  for (const std::uint64_t place : handles.places()) CHECK(access_of(1, place) == CU_MEM_ACCESS_FLAGS_PROT_NONE);
  REQUIRE(backing.add_peer(1).ok());
  for (const std::uint64_t place : handles.places()) CHECK(access_of(1, place) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

TEST_CASE("the own device never loses its access", "[vmm][peer]") {
  VmmBacking backing(driver().api, driver().context, driver().device);
  REQUIRE(backing.add_peer(driver().device).ok());
  backing.remove_peer(driver().device);
  const ThreeHandles handles(backing);
  CHECK(access_of(driver().device, handles.places()[0]) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

TEST_CASE("handles can be registered for GPUDirect RDMA where the device knows it", "[vmm]") {
  const auto attribute = CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED;
  const int wanted = attribute_of(driver().api, driver().device, attribute, 0);
  VmmBacking backing(driver().api, driver().context, driver().device);
  const ThreeHandles handles(backing);
  unsigned capable = 99;
  REQUIRE(driver().api.cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE,
                                             handles.places()[0]) == CUDA_SUCCESS);
  CHECK((capable & 1) == unsigned(wanted != 0));
}

}  // namespace gpupool::test
