// A second device and its peers, and parts of the first one. Where the machine has one device only, peers print
// nothing.
#include <vector>

#include "tests/differential/operations.h"

namespace differential {
namespace {

constexpr CUdevice kOther = 1;

std::string read_back(CUdeviceptr block, std::size_t bytes, unsigned char content) {
  std::vector<unsigned char> seen(bytes);
  if (driver().cuMemcpyDtoH_(seen.data(), block, bytes) != CUDA_SUCCESS) return "unreadable";
  std::size_t wrong = 0;
  for (const unsigned char byte : seen) wrong += byte != content;
  return wrong ? std::to_string(wrong) + " WRONG" : "right";
}

// Both ways, by copies and by work of the one on memory of the other, made before and after.
void reach(World& world, CUcontext other, CUdeviceptr theirs, std::size_t bytes) {
  const auto content = static_cast<unsigned char>(world.below(256));
  CUdeviceptr mine = 0;
  world.say("enable access", driver().cuCtxEnablePeerAccess_(other, 0));
  world.say("enable again", driver().cuCtxEnablePeerAccess_(other, 0));
  world.say("write theirs", driver().cuMemsetD8_(theirs, content, bytes));
  const int written = driver().cuCtxSynchronize_();
  world.say("read theirs", written, read_back(theirs, bytes, content));
  const int made = world.api().alloc(&mine, bytes);
  world.say("alloc here", made);
  if (made == 0) {
    world.say("copy from theirs", driver().cuMemcpyPeer_(mine, world.primary, theirs, other, bytes));
    const int copied = driver().cuCtxSynchronize_();
    world.say("read it", copied, read_back(mine, bytes, content));
    world.say("free here", world.api().free(mine));
  }
  if (world.one_in(2)) world.say("disable access", driver().cuCtxDisablePeerAccess_(other));
}

}  // namespace

void use_other_device(World& world) {
  int count = 0;
  int can = 0;
  CUcontext other = nullptr;
  CUdeviceptr theirs = 0;
  CUdeviceptr ordered = 0;
  CUdevice device = -1;
  if (driver().cuDeviceGetCount_(&count) != CUDA_SUCCESS || count < 2) return;
  const std::size_t bytes = 1 + world.below(1 << 18);
  world.say("other device", driver().cuDevicePrimaryCtxRetain_(&other, kOther));
  world.say("its context", driver().cuCtxSetCurrent_(other));
  world.say("alloc there", world.api().alloc(&theirs, bytes));
  world.say("alloc ordered there", world.api().alloc_async(&ordered, bytes, nullptr));
  world.say("back", driver().cuCtxSetCurrent_(world.primary));
  const int asked = driver().cuPointerGetAttribute_(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, theirs);
  world.say("device of theirs", asked, std::to_string(device));
  const int told = driver().cuDeviceCanAccessPeer_(&can, 0, kOther);
  world.say("can reach it", told, std::to_string(can));
  if (can && theirs) reach(world, other, theirs, bytes);
  world.say("disable access", driver().cuCtxDisablePeerAccess_(other));
  const bool from_here = world.one_in(2);
  if (from_here) world.say("free theirs from here", world.api().free(theirs));
  CUcontext current = nullptr;
  const int still = driver().cuCtxGetCurrent_(&current);
  world.say("context still", still, current == world.primary ? "this one" : "ANOTHER");
  world.say("its context", driver().cuCtxSetCurrent_(other));
  if (!from_here) world.say("free theirs", world.api().free(theirs));
  world.say("free theirs again", world.api().free(theirs));
  world.say("free ordered there", world.api().free_async(ordered, nullptr));
  world.say("wait there", driver().cuCtxSynchronize_());
  world.say("back", driver().cuCtxSetCurrent_(world.primary));
  world.say("release the other", driver().cuDevicePrimaryCtxRelease_(kOther));
}

void reach_itself(World& world) {
  world.say("access to itself", driver().cuCtxEnablePeerAccess_(world.primary, 0));
  world.say("none to take back", driver().cuCtxDisablePeerAccess_(world.primary));
}

// A green context is a part of its device's primary context: same memory, streams of its own.
void use_part_of_device(World& world) {
  CUdevResource all{};
  CUdevResourceDesc described = nullptr;
  CUgreenCtx part = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr ordered = 0;
  const std::size_t bytes = 1 + world.below(1 << 18);
  const int asked = driver().cuDeviceGetDevResource_(0, &all, CU_DEV_RESOURCE_TYPE_SM);
  world.say("resource", asked);
  if (asked != 0) return;
  world.say("description", driver().cuDevResourceGenerateDesc_(&described, &all, 1));
  world.say("green context", driver().cuGreenCtxCreate_(&part, described, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  if (!part) return;
  world.say("its stream", driver().cuGreenCtxStreamCreate_(&stream, part, CU_STREAM_NON_BLOCKING, 0));
  if (stream) {
    const int made = driver().cuMemAllocAsync_(&ordered, bytes, stream);
    world.say("alloc on its stream", made);
    if (made == 0) {
      world.say("write on its stream", driver().cuMemsetD8Async_(ordered, 7, bytes, stream));
      const int waited = driver().cuStreamSynchronize_(stream);
      world.say("wait for it", waited, read_back(ordered, bytes, 7));
      world.say("free on its stream", driver().cuMemFreeAsync_(ordered, stream));
    }
    world.say("wait for it", driver().cuStreamSynchronize_(stream));
    world.say("its stream destroyed", driver().cuStreamDestroy_(stream));
  }
  world.say("green context destroyed", driver().cuGreenCtxDestroy_(part));
}

}  // namespace differential
