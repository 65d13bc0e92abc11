// Memory functions of the stand-in runtime that take no stream.
#include <cstdint>

#include "tests/simcuda/cudart/runtime.h"

using namespace gpupool::standin;

cudaError_t cudaMalloc(void** out, size_t bytes) {
  if (const cudaError_t e = start()) return finish(e);
  if (!out) return finish(cudaErrorInvalidValue);
  *out = nullptr;
  // Nothing is asked of the driver for nothing.
  if (bytes == 0) return cudaSuccess;
  return call(&Driver::cuMemAlloc_, reinterpret_cast<CUdeviceptr*>(out), bytes);
}

cudaError_t cudaFree(void* pointer) { return call(&Driver::cuMemFree_, address(pointer)); }

cudaError_t cudaMallocPitch(void** out, size_t* pitch, size_t width, size_t height) {
  if (const cudaError_t e = start()) return finish(e);
  if (!out || !pitch) return finish(cudaErrorInvalidValue);
  *out = nullptr;
  *pitch = 0;
  if (width == 0 || height == 0) return cudaSuccess;
  return call(&Driver::cuMemAllocPitch_, reinterpret_cast<CUdeviceptr*>(out), pitch, width, height, 4u);
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* out, cudaExtent extent) {
  if (!out) return finish(cudaErrorInvalidValue);
  if (extent.depth && extent.height > SIZE_MAX / extent.depth) return finish(cudaErrorMemoryAllocation);
  *out = cudaPitchedPtr{nullptr, 0, extent.width, extent.height};
  return cudaMallocPitch(&out->ptr, &out->pitch, extent.width, extent.height * extent.depth);
}

cudaError_t cudaMallocManaged(void** out, size_t bytes, unsigned flags) {
  return call(&Driver::cuMemAllocManaged_, reinterpret_cast<CUdeviceptr*>(out), bytes, flags);
}

cudaError_t cudaHostAlloc(void** out, size_t bytes, unsigned flags) {
  return call(&Driver::cuMemHostAlloc_, out, bytes, flags);
}
cudaError_t cudaMallocHost(void** out, size_t bytes) { return call(&Driver::cuMemHostAlloc_, out, bytes, 0u); }
cudaError_t cudaFreeHost(void* pointer) { return call(&Driver::cuMemFreeHost_, pointer); }
cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned flags) {
  return call(&Driver::cuMemHostRegister_, pointer, bytes, flags);
}
cudaError_t cudaHostUnregister(void* pointer) { return call(&Driver::cuMemHostUnregister_, pointer); }

cudaError_t cudaMallocArray(cudaArray_t* out, const cudaChannelFormatDesc* format, size_t width, size_t height,
                            unsigned) {
  if (!out || !format) return finish(cudaErrorInvalidValue);
  CUDA_ARRAY3D_DESCRIPTOR description{};
  description.Width = width;
  description.Height = height;
  description.Format = format->x == 8    ? CU_AD_FORMAT_UNSIGNED_INT8
                       : format->x == 16 ? CU_AD_FORMAT_UNSIGNED_INT16
                                         : CU_AD_FORMAT_FLOAT;
  description.NumChannels = 1u + (format->y != 0) + (format->z != 0) + (format->w != 0);
  return call(&Driver::cuArray3DCreate_, reinterpret_cast<CUarray*>(out), &description);
}

cudaError_t cudaFreeArray(cudaArray_t array) {
  return call(&Driver::cuArrayDestroy_, reinterpret_cast<CUarray>(array));
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) { return call(&Driver::cuMemGetInfo_, free, total); }

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* out, const void* pointer) {
  if (!out) return finish(cudaErrorInvalidValue);
  unsigned type = 0;
  unsigned managed = 0;
  int device = 0;
  CUdeviceptr device_pointer = 0;
  void* host_pointer = nullptr;
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                 CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void* answers[] = {&type, &managed, &device, &device_pointer, &host_pointer};
  const cudaError_t e = call(&Driver::cuPointerGetAttributes_, 5u, asked, answers, address(pointer));
  if (e != cudaSuccess) return e;
  out->type = managed ? cudaMemoryTypeManaged : static_cast<cudaMemoryType>(type);
  if (!managed && type != 0) out->type = type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
  out->device = device;
  out->devicePointer = reinterpret_cast<void*>(device_pointer);
  out->hostPointer = type == 0 ? const_cast<void*>(pointer) : host_pointer;
  return cudaSuccess;
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* out, void* pointer) {
  return call(&Driver::cuIpcGetMemHandle_, reinterpret_cast<CUipcMemHandle*>(out), address(pointer));
}

cudaError_t cudaIpcOpenMemHandle(void** out, cudaIpcMemHandle_t handle, unsigned flags) {
  CUipcMemHandle driver_handle;
  static_assert(sizeof driver_handle == sizeof handle);
  __builtin_memcpy(&driver_handle, &handle, sizeof handle);
  return call(&Driver::cuIpcOpenMemHandle_, reinterpret_cast<CUdeviceptr*>(out), driver_handle, flags);
}

cudaError_t cudaIpcCloseMemHandle(void* pointer) { return call(&Driver::cuIpcCloseMemHandle_, address(pointer)); }

cudaError_t cudaMemPoolCreate(cudaMemPool_t* out, const cudaMemPoolProps* props) {
  static_assert(sizeof(CUmemPoolProps) == sizeof(cudaMemPoolProps));
  return call(&Driver::cuMemPoolCreate_, out, reinterpret_cast<const CUmemPoolProps*>(props));
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) { return call(&Driver::cuMemPoolDestroy_, pool); }
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) { return call(&Driver::cuMemPoolTrimTo_, pool, keep); }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return call(&Driver::cuMemPoolSetAttribute_, pool, static_cast<CUmemPool_attribute>(attribute), value);
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return call(&Driver::cuMemPoolGetAttribute_, pool, static_cast<CUmemPool_attribute>(attribute), value);
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* descriptions, size_t count) {
  static_assert(sizeof(CUmemAccessDesc) == sizeof(cudaMemAccessDesc));
  return call(&Driver::cuMemPoolSetAccess_, pool, reinterpret_cast<const CUmemAccessDesc*>(descriptions), count);
}
cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation* location) {
  return call(&Driver::cuMemPoolGetAccess_, reinterpret_cast<CUmemAccess_flags*>(flags), pool,
              reinterpret_cast<CUmemLocation*>(location));
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* out, int device) {
  return call(&Driver::cuDeviceGetDefaultMemPool_, out, device);
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* out, int device) {
  return call(&Driver::cuDeviceGetMemPool_, out, device);
}
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return call(&Driver::cuDeviceSetMemPool_, device, pool);
}
