// Streams, events, graphs and libraries of kernels: what takes no default stream.
#include "tests/simcuda/cudart/runtime.h"

using namespace gpupool::standin;

cudaError_t cudaStreamCreate(cudaStream_t* out) { return call(&Driver::cuStreamCreateWithPriority_, out, 0u, 0); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned flags) {
  return call(&Driver::cuStreamCreateWithPriority_, out, flags, 0);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* out, unsigned flags, int priority) {
  return call(&Driver::cuStreamCreateWithPriority_, out, flags, priority);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return call(&Driver::cuStreamDestroy_, stream); }

cudaError_t cudaEventCreate(cudaEvent_t* out) { return call(&Driver::cuEventCreate_, out, 0u); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned flags) {
  return call(&Driver::cuEventCreate_, out, flags);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) { return call(&Driver::cuEventDestroy_, event); }
cudaError_t cudaEventQuery(cudaEvent_t event) { return call(&Driver::cuEventQuery_, event); }
cudaError_t cudaEventSynchronize(cudaEvent_t event) { return call(&Driver::cuEventSynchronize_, event); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start_event, cudaEvent_t end_event) {
  return call(&Driver::cuEventElapsedTime_, milliseconds, start_event, end_event);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return call(&Driver::cuThreadExchangeStreamCaptureMode_, reinterpret_cast<CUstreamCaptureMode*>(mode));
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long flags) {
  return call(&Driver::cuGraphInstantiateWithFlags_, out, graph, flags);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long flags) {
  return call(&Driver::cuGraphInstantiateWithFlags_, out, graph, flags);
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return call(&Driver::cuGraphDestroy_, graph); }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { return call(&Driver::cuGraphExecDestroy_, exec); }

cudaError_t cudaLibraryLoadData(cudaLibrary_t* out, const void* image, cudaJitOption*, void**, unsigned,
                                cudaLibraryOption*, void**, unsigned) {
  return call(&Driver::cuLibraryLoadData_, reinterpret_cast<CUlibrary*>(out), image,
              static_cast<CUjit_option*>(nullptr), static_cast<void**>(nullptr), 0u,
              static_cast<CUlibraryOption*>(nullptr), static_cast<void**>(nullptr), 0u);
}
cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  return call(&Driver::cuLibraryUnload_, reinterpret_cast<CUlibrary>(library));
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t* out, cudaLibrary_t library, const char* name) {
  return call(&Driver::cuLibraryGetKernel_, reinterpret_cast<CUkernel*>(out), reinterpret_cast<CUlibrary>(library),
              name);
}
