// Small questions about contexts, and the guard that makes one current for a moment.
// Nothing here creates a context or leaves another one current than it found. Any thread, no lock.
// A green context is a share of its device's primary context: memory and events belong to the primary, so it folds into
// that.
#pragma once

#include "device/driver_api.h"

namespace gpupool {

/// A context as the pool tells contexts apart: handles are used again after a destroy, ids are not.
struct ContextIdentity {
  CUcontext handle = nullptr;  // null: none
  unsigned long long id = 0;   // 0 on drivers before CUDA 12.0, which give none
  bool operator==(const ContextIdentity&) const = default;
};

/// The context current to the calling thread as the thread sees it, green or not; null if none is.
CUcontext current_context(const DriverApi& api);

/// `context` with its id.
ContextIdentity identify(const DriverApi& api, CUcontext context);

enum class ContextKind : unsigned char { kRegular, kGreen };

/// Where a stream's work belongs.
struct StreamHome {
  CUresult result = CUDA_SUCCESS;
  CUcontext context = nullptr;  // the primary for a stream of a green context
  ContextKind kind = ContextKind::kRegular;
};

/// The home of a stream; for the default streams (null, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD) that is the current
/// context, folded. Captures forbid some questions: captures.h has current_home().
StreamHome home_of(const DriverApi& api, CUstream stream);

/// Whether an error stays with its context until that is destroyed, as after a fault of a kernel: the driver answers
/// every later call with it, and so must we.
bool is_sticky(CUresult result);

/// Null, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD: handles that mean another stream in each context.
inline bool is_default_stream(CUstream stream) {
  return stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

/// The device of a context that need not be current.
CUresult device_of(const DriverApi& api, CUcontext context, CUdevice& device);

/// Does the device's primary context exist? Asking does not create it.
bool primary_is_active(const DriverApi& api, CUdevice device);

/// That context; null if there is none. Only a retain tells, which is given back at once.
CUcontext primary_context(const DriverApi& api, CUdevice device);

/// A device attribute, or `otherwise` where the driver does not know it.
int attribute_of(const DriverApi& api, CUdevice device, CUdevice_attribute attribute, int otherwise);

/// Makes `context` current while it lives, unless it is already. Check result() before work that needs the context.
class ContextGuard {
 public:
  ContextGuard(const DriverApi& api, CUcontext context);
  ~ContextGuard();
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;

  CUresult result() const { return result_; }
  bool ok() const { return result_ == CUDA_SUCCESS; }

 private:
  const DriverApi& api_;
  CUresult result_ = CUDA_SUCCESS;
  bool pushed_ = false;
};

/// Lets the calling thread make calls that an open capture would otherwise forbid (cuMemAlloc, cuMemFree,
/// cuEventQuery), while it lives. Context records and synchronisation stay forbidden.
class RelaxedCaptureGuard {
 public:
  explicit RelaxedCaptureGuard(const DriverApi& api);
  ~RelaxedCaptureGuard();
  RelaxedCaptureGuard(const RelaxedCaptureGuard&) = delete;
  RelaxedCaptureGuard& operator=(const RelaxedCaptureGuard&) = delete;

  bool ok() const { return exchanged_; }

 private:
  const DriverApi& api_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  bool exchanged_ = false;
};

}  // namespace gpupool
