// What works on a stream. Compiled twice: as it stands, and with CUDA_API_PER_THREAD_DEFAULT_STREAM, where CUDA's
// header gives each function its `_ptsz` or `_ptds` name and stream 0 means the thread's own default stream.
#include <cstring>

#include "tests/simcuda/cudart/runtime.h"

using namespace gpupool::standin;

namespace {

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
const Driver& table() { return driver_per_thread(); }
#else
const Driver& table() { return driver(); }
#endif

}  // namespace

cudaError_t cudaMallocAsync(void** out, size_t bytes, cudaStream_t stream) {
  return call(&Driver::cuMemAllocAsync_, table(), reinterpret_cast<CUdeviceptr*>(out), bytes, stream);
}

cudaError_t cudaMallocFromPoolAsync(void** out, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  return call(&Driver::cuMemAllocFromPoolAsync_, table(), reinterpret_cast<CUdeviceptr*>(out), bytes, pool, stream);
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return call(&Driver::cuMemFreeAsync_, table(), address(pointer), stream);
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return call(&Driver::cuMemcpyHtoD_, table(), address(to), from, bytes);
    case cudaMemcpyDeviceToHost:
      return call(&Driver::cuMemcpyDtoH_, table(), to, address(from), bytes);
    case cudaMemcpyDeviceToDevice:
      return call(&Driver::cuMemcpyDtoD_, table(), address(to), address(from), bytes);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      return call(&Driver::cuMemcpy_, table(), address(to), address(from), bytes);
  }
  return finish(cudaErrorInvalidMemcpyDirection);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return call(&Driver::cuMemcpyHtoDAsync_, table(), address(to), from, bytes, stream);
    case cudaMemcpyDeviceToHost:
      return call(&Driver::cuMemcpyDtoHAsync_, table(), to, address(from), bytes, stream);
    case cudaMemcpyDeviceToDevice:
      return call(&Driver::cuMemcpyDtoDAsync_, table(), address(to), address(from), bytes, stream);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      return call(&Driver::cuMemcpyAsync_, table(), address(to), address(from), bytes, stream);
  }
  return finish(cudaErrorInvalidMemcpyDirection);
}

cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind kind) {
  CUDA_MEMCPY2D description{};
  const bool from_host = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost;
  const bool to_host = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost;
  description.srcMemoryType = from_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  description.dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  description.srcHost = from;
  description.srcDevice = address(from);
  description.srcPitch = from_pitch;
  description.dstHost = to;
  description.dstDevice = address(to);
  description.dstPitch = to_pitch;
  description.WidthInBytes = width;
  description.Height = height;
  return call(&Driver::cuMemcpy2D_, table(), &description);
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return call(&Driver::cuMemsetD8_, table(), address(to), static_cast<unsigned char>(value), bytes);
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return call(&Driver::cuMemsetD8Async_, table(), address(to), static_cast<unsigned char>(value), bytes, stream);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) { return call(&Driver::cuStreamQuery_, table(), stream); }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return call(&Driver::cuStreamSynchronize_, table(), stream); }
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return call(&Driver::cuStreamGetFlags_, table(), stream, flags);
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return call(&Driver::cuStreamGetPriority_, table(), stream, priority);
}
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return call(&Driver::cuStreamGetId_, table(), stream, id);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return call(&Driver::cuStreamWaitEvent_, table(), stream, event, flags);
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call(&Driver::cuEventRecord_, table(), event, stream);
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return call(&Driver::cuEventRecordWithFlags_, table(), event, stream, flags);
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return call(&Driver::cuLaunchHostFunc_, table(), stream, function, data);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call(&Driver::cuStreamBeginCapture_, table(), stream, static_cast<CUstreamCaptureMode>(mode));
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call(&Driver::cuStreamEndCapture_, table(), stream, graph);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return call(&Driver::cuStreamIsCapturing_, table(), stream, reinterpret_cast<CUstreamCaptureStatus*>(status));
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return call(&Driver::cuGraphLaunch_, table(), exec, stream);
}

// `kernel` is what cudaLibraryGetKernel gave.
cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** parameters, size_t shared,
                             cudaStream_t stream) {
  return call(&Driver::cuLaunchKernel_, table(), reinterpret_cast<CUfunction>(const_cast<void*>(kernel)), grid.x,
              grid.y, grid.z, block.x, block.y, block.z, static_cast<unsigned>(shared), stream, parameters,
              static_cast<void**>(nullptr));
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                             unsigned long long flags, cudaDriverEntryPointQueryResult* status) {
  if (const cudaError_t e = start_driver()) return finish(e);
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  cuuint64_t wanted = flags;
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
  if (wanted == CU_GET_PROC_ADDRESS_DEFAULT) wanted = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
#endif
  const CUresult result = table().get_proc_address(symbol, function, static_cast<int>(version), wanted, &found);
  if (status) *status = static_cast<cudaDriverEntryPointQueryResult>(found);
  return finish(result);
}
