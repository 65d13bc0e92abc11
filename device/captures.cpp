// See captures.h.
#include "device/captures.h"

#include <algorithm>

#include "device/context.h"

namespace gpupool {

bool Captures::Origin::operator==(const Origin& other) const {
  return stream == other.stream && thread == other.thread && (!is_default_stream(stream) || context == other.context);
}

Captures::Origin Captures::origin_of(const DriverApi& api, CUstream stream) {
  Origin origin{home_of(api, stream).context, stream, {}};
  if (stream == CU_STREAM_PER_THREAD) origin.thread = std::this_thread::get_id();
  return origin;
}

void Captures::began(const Origin& origin) {
  const std::lock_guard lock(mutex_);
  if (std::find(origins_.begin(), origins_.end(), origin) != origins_.end()) return;
  origins_.push_back(origin);
  open_.store(static_cast<unsigned>(origins_.size()), std::memory_order_release);
}

Captures::Left Captures::ended(const Origin& origin) {
  return erase([&](const Origin& open) { return open == origin; });
}

Captures::Left Captures::context_ended(CUcontext context) {
  return erase([&](const Origin& open) { return open.context == context; });
}

template <typename Predicate>
Captures::Left Captures::erase(Predicate over) {
  const std::lock_guard lock(mutex_);
  if (std::erase_if(origins_, over) == 0) return Left::kNotTracked;
  open_.store(static_cast<unsigned>(origins_.size()), std::memory_order_release);
  return origins_.empty() ? Left::kNoneOpen : Left::kSomeOpen;
}

StreamHome current_home(const DriverApi& api, Captures& captures) {
  const auto no_begin = captures.hold_off_begins();
  return home_of(api, captures.any_open() ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY);
}

bool is_capturing(const DriverApi& api, CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return api.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace gpupool
