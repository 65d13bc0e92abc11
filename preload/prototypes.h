// A prototype for every row of hooks.def, so that decltype(&symbol) is the type of the exported function of exactly that name.
//
// cuda.h declares most. It hides the older spellings behind macros (cuCtxCreate is cuCtxCreate_v4 there) and the per-thread ones behind
// a build mode; they are declared here, and the macros that stand in their way end here. So include this header rather than cuda.h where
// rows are expanded, and write the driver's names with their suffix. The ABI of an exported name never changes, so these hold for every
// driver; a test compares them with cuda.h's own internal mode.
#pragma once

#include <cuda.h>

#undef cuCtxCreate
#undef cuCtxDestroy
#undef cuStreamDestroy
#undef cuStreamBeginCapture
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuIpcOpenMemHandle
#undef cuGraphInstantiate
#undef cuGetProcAddress

extern "C" {

// Per-thread default stream.
CUresult CUDAAPI cuMemAllocAsync_ptsz(CUdeviceptr* block, size_t bytes, CUstream stream);
CUresult CUDAAPI cuMemFreeAsync_ptsz(CUdeviceptr block, CUstream stream);
CUresult CUDAAPI cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* block, size_t bytes, CUmemoryPool pool, CUstream stream);
CUresult CUDAAPI cuGraphInstantiateWithParams_ptsz(CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params);
CUresult CUDAAPI cuStreamBeginCapture_ptsz(CUstream stream);
CUresult CUDAAPI cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode);
CUresult CUDAAPI cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                                  const CUgraphEdgeData* edges, size_t count, CUstreamCaptureMode mode);
CUresult CUDAAPI cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph);

// Older spellings.
CUresult CUDAAPI cuStreamBeginCapture(CUstream stream);
CUresult CUDAAPI cuStreamDestroy(CUstream stream);
CUresult CUDAAPI cuCtxCreate(CUcontext* context, unsigned int flags, CUdevice device);
CUresult CUDAAPI cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device);
CUresult CUDAAPI cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* params, int count, unsigned int flags, CUdevice device);
CUresult CUDAAPI cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* params, unsigned int flags, CUdevice device);
CUresult CUDAAPI cuCtxDestroy(CUcontext context);
CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice device);
CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device);
CUresult CUDAAPI cuIpcOpenMemHandle(CUdeviceptr* block, CUipcMemHandle handle, unsigned int flags);
CUresult CUDAAPI cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, CUgraphNode* node, char* log, size_t bytes);
CUresult CUDAAPI cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode* node, char* log, size_t bytes);
CUresult CUDAAPI cuGetProcAddress(const char* name, void** function, int version, cuuint64_t flags);

// Newer than CUDA 12.5, the oldest cuda.h that serves.
CUresult CUDAAPI cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type);
CUresult CUDAAPI cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type);
CUresult CUDAAPI cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool);

}  // extern "C"
