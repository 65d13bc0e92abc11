// Plain device memory: cuMemAlloc, cuMemAllocPitch, cuMemFree. What is not plainly serveable goes to the driver, whose
// answer is native by definition.
#include "preload/real.h"

#include "preload/serve.h"
#include "preload/streams.h"

namespace gpupool::hook {
namespace {

// The driver's rule for every device seen so far: rows begin on multiples of this.
constexpr std::size_t kPitchAlignment = 512;

bool serveable(const Guard& guard, const CUdeviceptr* out, std::uint64_t bytes) {
  return !guard.nested() && out && bytes != 0 && bytes <= kLargestRequest;
}

template <class Ask>
CUresult plain(const Guard& guard, HookRow row, std::uint64_t bytes, CUdeviceptr* out, Ask ask) {
  Home* home = process().registry.here(guard, bytes);
  if (const CUresult fault = home ? fault_on(CU_STREAM_LEGACY, home) : CUDA_SUCCESS) return driver_said(*home, fault);
  return home ? serve(guard, *home, {.bytes = bytes, .own_free = home->own_free()}, row, out, ask)
              : pass_through(guard, row, bytes, out, ask);
}

// Bytes of a pitched request, 0 where the driver shall say what is wrong with it.
std::uint64_t pitched_bytes(std::size_t width, std::size_t height, unsigned element, std::size_t& pitch) {
  if (width == 0 || height == 0 || width > kLargestRequest || (element != 4 && element != 8 && element != 16)) return 0;
  pitch = (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
  return height <= kLargestRequest / pitch ? pitch * height : 0;
}

}  // namespace

CUresult cuMemAlloc_v2(CUdeviceptr* out, std::size_t bytes) {
  const Guard guard;
  const auto ask = [&] { return real::cuMemAlloc_v2(out, bytes); };
  return serveable(guard, out, bytes) ? plain(guard, kRow_cuMemAlloc_v2, bytes, out, ask) : ask();
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* out, std::size_t* pitch_out, std::size_t width, std::size_t height,
                            unsigned element) {
  const Guard guard;
  const auto ask = [&] { return real::cuMemAllocPitch_v2(out, pitch_out, width, height, element); };
  std::size_t pitch = 0;
  const std::uint64_t bytes = pitched_bytes(width, height, element, pitch);
  if (!pitch_out || !serveable(guard, out, bytes)) return ask();
  const CUresult result = plain(guard, kRow_cuMemAllocPitch_v2, bytes, out, ask);
  if (result == CUDA_SUCCESS) *pitch_out = pitch;
  return result;
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  const Guard guard;
  const auto ask = [&] { return real::cuMemFree_v2(address); };
  if (guard.nested()) return ask();
  Home* home = process().registry.at(address);
  if (!home || !home->serves()) return pass_free(guard, kRow_cuMemFree_v2, address, ask);
  home->tape()->prefetch(address);
  return give_back(guard, *home, kRow_cuMemFree_v2, address, kContextLine);
}

}  // namespace gpupool::hook
