// See context.h.
#include "device/context.h"

namespace gpupool {

bool is_sticky(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
      return true;
    default:
      return false;
  }
}

CUcontext current_context(const DriverApi& api) {
  CUcontext context = nullptr;
  return api.cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : nullptr;
}

ContextIdentity identify(const DriverApi& api, CUcontext context) {
  ContextIdentity identity{context, 0};
  if (context && api.cuCtxGetId && api.cuCtxGetId(context, &identity.id) != CUDA_SUCCESS) identity.id = 0;
  return identity;
}

StreamHome home_of(const DriverApi& api, CUstream stream) {
  StreamHome home;
  if (!api.cuStreamGetCtx_v2) {
    home.result = api.cuStreamGetCtx(stream, &home.context);
    return home;
  }
  CUgreenCtx green = nullptr;
  home.result = api.cuStreamGetCtx_v2(stream, &home.context, &green);
  if (green) home.kind = ContextKind::kGreen;
  return home;
}

CUresult device_of(const DriverApi& api, CUcontext context, CUdevice& device) {
  const ContextGuard current(api, context);
  return current.ok() ? api.cuCtxGetDevice(&device) : current.result();
}

bool primary_is_active(const DriverApi& api, CUdevice device) {
  unsigned flags = 0;
  int active = 0;
  return api.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active != 0;
}

CUcontext primary_context(const DriverApi& api, CUdevice device) {
  CUcontext context = nullptr;
  if (!api.cuDevicePrimaryCtxRelease_v2 || !primary_is_active(api, device) ||
      api.cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS)
    return nullptr;
  api.cuDevicePrimaryCtxRelease_v2(device);
  return context;
}

int attribute_of(const DriverApi& api, CUdevice device, CUdevice_attribute attribute, int otherwise) {
  int value = otherwise;
  return api.cuDeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS ? value : otherwise;
}

ContextGuard::ContextGuard(const DriverApi& api, CUcontext context) : api_(api) {
  if (current_context(api) == context) return;
  result_ = api.cuCtxPushCurrent_v2(context);
  pushed_ = result_ == CUDA_SUCCESS;
}

ContextGuard::~ContextGuard() {
  CUcontext popped = nullptr;
  if (pushed_) api_.cuCtxPopCurrent_v2(&popped);
}

RelaxedCaptureGuard::RelaxedCaptureGuard(const DriverApi& api) : api_(api) {
  exchanged_ = api.cuThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS;
}

RelaxedCaptureGuard::~RelaxedCaptureGuard() {
  if (exchanged_) api_.cuThreadExchangeStreamCaptureMode(&mode_);
}

}  // namespace gpupool
