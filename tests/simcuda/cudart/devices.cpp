// Devices, errors and entry points of the stand-in runtime.
#include <cstdio>
#include <cstring>

#include "tests/simcuda/cudart/runtime.h"

using namespace gpupool::standin;

cudaError_t cudaGetDeviceCount(int* count) {
  if (!count) return finish(cudaErrorInvalidValue);
  if (const cudaError_t e = start_driver()) return finish(e);
  return finish(driver().cuDeviceGetCount_(count));
}

cudaError_t cudaSetDevice(int device) {
  CUdevice found = 0;
  if (const cudaError_t e = start_driver()) return finish(e);
  if (const CUresult e = driver().cuDeviceGet_(&found, device)) return finish(e);
  set_current_device(device);
  return finish(start());
}

cudaError_t cudaGetDevice(int* device) {
  if (!device) return finish(cudaErrorInvalidValue);
  if (const cudaError_t e = start_driver()) return finish(e);
  *device = current_device();
  return cudaSuccess;
}

cudaError_t cudaDeviceReset() {
  if (const cudaError_t e = start_driver()) return finish(e);
  forget_context(current_device());
  return finish(driver().cuDevicePrimaryCtxReset_(current_device()));
}

cudaError_t cudaDeviceSynchronize() { return call(&Driver::cuCtxSynchronize_); }

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (const cudaError_t e = start_driver()) return finish(e);
  return finish(driver().cuDeviceGetAttribute_(value, static_cast<CUdevice_attribute>(attribute), device));
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int device) {
  if (!out) return finish(cudaErrorInvalidValue);
  if (const cudaError_t e = start_driver()) return finish(e);
  std::memset(out, 0, sizeof *out);
  const auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    driver().cuDeviceGetAttribute_(&value, which, device);
    return value;
  };
  if (const CUresult e = driver().cuDeviceGetName_(out->name, sizeof out->name, device)) return finish(e);
  CUuuid uuid;
  driver().cuDeviceGetUuid_(&uuid, device);
  std::memcpy(&out->uuid, &uuid, sizeof uuid);
  driver().cuDeviceTotalMem_(&out->totalGlobalMem, device);
  out->major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  out->minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  out->multiProcessorCount = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  out->textureAlignment = static_cast<size_t>(attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT));
  out->unifiedAddressing = attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (const cudaError_t e = start_driver()) return finish(e);
  return finish(driver().cuDeviceCanAccessPeer_(can, device, peer));
}

namespace {

// The peer's context is made if there is none yet, and the thread's device stays what it was.
cudaError_t context_of(int device, CUcontext& out) {
  const int mine = current_device();
  if (const cudaError_t e = cudaSetDevice(device)) return e;
  const CUresult result = driver().cuCtxGetCurrent_(&out);
  if (const cudaError_t e = cudaSetDevice(mine)) return e;
  return finish(result);
}

}  // namespace

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  CUcontext context = nullptr;
  if (const cudaError_t e = context_of(peer, context)) return e;
  return call(&Driver::cuCtxEnablePeerAccess_, context, flags);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  CUcontext context = nullptr;
  if (const cudaError_t e = context_of(peer, context)) return e;
  return call(&Driver::cuCtxDisablePeerAccess_, context);
}

cudaError_t cudaDriverGetVersion(int* version) {
  if (!version) return finish(cudaErrorInvalidValue);
  *version = 0;
  return start_driver() ? cudaSuccess : finish(driver().cuDriverGetVersion_(version));
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (!version) return finish(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

const char* cudaGetErrorString(cudaError_t error) {
  const char* text = nullptr;
  if (error == cudaErrorInsufficientDriver) return "CUDA driver version is insufficient for CUDA runtime version";
  if (start_driver() == cudaSuccess) driver().cuGetErrorString_(static_cast<CUresult>(error), &text);
  return text ? text : "unrecognized error code";
}

const char* cudaGetErrorName(cudaError_t error) {
  const char* text = nullptr;
  if (error == cudaErrorInsufficientDriver) return "cudaErrorInsufficientDriver";
  if (start_driver() == cudaSuccess) driver().cuGetErrorName_(static_cast<CUresult>(error), &text);
  return text ? text : "unrecognized error code";
}
