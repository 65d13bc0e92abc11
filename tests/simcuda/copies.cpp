// Copies and sets. Pageable host memory is read when the call is made (the driver stages it) and a copy into it blocks;
// pinned memory is touched when the stream comes to it. Blocking copies run on the default stream and wait. One row is
// the normal case; 2D copies are many.
#include <cstring>

#include "tests/simcuda/call.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/scheduler.h"
#include "tests/simcuda/streams.h"

namespace gpupool::sim {
namespace {

enum class Wait { kNo, kYes };

struct Shape {
  CUdeviceptr to;
  CUdeviceptr from;
  size_t width;  // bytes
  size_t height = 1;
  size_t to_pitch = 0;
  size_t from_pitch = 0;
};

bool is_pageable(CUdeviceptr address) { return !is_device_address(address) && !find_allocation(address); }

CUresult copy(const Shape& s, CUstream handle, Wait wait) {
  if (s.width == 0 || s.height == 0) return CUDA_SUCCESS;
  if (!s.to || !s.from) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = nullptr;
  if (const CUresult e = find_stream(handle, stream)) return e;
  if (wait == Wait::kYes) {
    if (const CUresult e = refuse_unsafe_call()) return e;
  }
  const size_t to_span = s.to_pitch * (s.height - 1) + s.width;
  const size_t from_span = s.from_pitch * (s.height - 1) + s.width;
  Work work;
  work.name = "copy";
  work.accesses = {{s.to, to_span, Touch::kWrite, is_device_address(s.to)},
                   {s.from, from_span, Touch::kRead, is_device_address(s.from)}};
  const bool to_pageable = is_pageable(s.to);
  std::shared_ptr<std::vector<char>> staged;
  if (is_pageable(s.from) && !stream->capture) {
    const auto* source = reinterpret_cast<const char*>(s.from);
    staged = std::make_shared<std::vector<char>>(source, source + from_span);
    work.accesses.pop_back();
  }
  work.run = [s, staged] {
    for (size_t row = 0; row < s.height; ++row) {
      const char* source = (staged ? staged->data() : reinterpret_cast<const char*>(s.from)) + row * s.from_pitch;
      std::memmove(reinterpret_cast<char*>(s.to) + row * s.to_pitch, source, s.width);
    }
  };
  Context& root = root_of(*stream->context);
  OpRef op;
  if (const CUresult e = submit(handle, CU_GRAPH_NODE_TYPE_MEMCPY, std::move(work), &op)) return e;
  if (!op || (wait == Wait::kNo && !to_pageable)) return CUDA_SUCCESS;
  wait_until_done(op);
  return root.error;
}

CUresult copy_now(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) {
  return copy({to, from, bytes}, s, Wait::kYes);
}
CUresult copy_later(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) {
  return copy({to, from, bytes}, s, Wait::kNo);
}

CUresult peer_later(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes, CUstream s) {
  return copy({to, from, bytes}, s, Wait::kNo);
}

CUdeviceptr side(CUmemorytype type, const void* host, CUdeviceptr device) {
  return type == CU_MEMORYTYPE_HOST ? reinterpret_cast<CUdeviceptr>(host) : device;
}

CUresult copy_2d(const CUDA_MEMCPY2D* d, CUstream s, Wait wait) {
  if (!d || d->srcMemoryType == CU_MEMORYTYPE_ARRAY || d->dstMemoryType == CU_MEMORYTYPE_ARRAY)
    return CUDA_ERROR_INVALID_VALUE;
  const size_t to_pitch = d->dstPitch ? d->dstPitch : d->WidthInBytes;
  const size_t from_pitch = d->srcPitch ? d->srcPitch : d->WidthInBytes;
  if (to_pitch < d->WidthInBytes + d->dstXInBytes || from_pitch < d->WidthInBytes + d->srcXInBytes)
    return CUDA_ERROR_INVALID_VALUE;
  const CUdeviceptr to = side(d->dstMemoryType, d->dstHost, d->dstDevice) + d->dstY * to_pitch + d->dstXInBytes;
  const CUdeviceptr from = side(d->srcMemoryType, d->srcHost, d->srcDevice) + d->srcY * from_pitch + d->srcXInBytes;
  return copy({to, from, d->WidthInBytes, d->Height, to_pitch, from_pitch}, s, wait);
}

CUresult copy_2d_now(const CUDA_MEMCPY2D* d, CUstream s) { return copy_2d(d, s, Wait::kYes); }
CUresult copy_2d_later(const CUDA_MEMCPY2D* d, CUstream s) { return copy_2d(d, s, Wait::kNo); }

// Sets do not block the host, except on memory that asks for it (SYNC_MEMOPS).
template <class T>
CUresult set(CUdeviceptr to, T value, size_t count, CUstream handle) {
  if (count == 0) return CUDA_SUCCESS;
  if (!to || to % sizeof(T)) return CUDA_ERROR_INVALID_VALUE;
  const Allocation* allocation = find_allocation(to);
  const bool waits = allocation && allocation->sync_memops;
  Work work;
  work.name = "set";
  work.accesses = {{to, count * sizeof(T), Touch::kWrite, true}};
  work.run = [=] {
    T* cells = reinterpret_cast<T*>(to);
    for (size_t i = 0; i < count; ++i) cells[i] = value;
  };
  OpRef op;
  const CUresult e = submit(handle, CU_GRAPH_NODE_TYPE_MEMSET, std::move(work), &op);
  if (e == CUDA_SUCCESS && waits && op) wait_until_done(op);
  return e;
}

CUdeviceptr host(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

}  // namespace
}  // namespace gpupool::sim

using namespace gpupool::sim;

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return enter(Symbol::cuMemcpy, copy_now, to, from, bytes, legacy(nullptr));
}
CUresult cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return enter(Symbol::cuMemcpy_ptds, copy_now, to, from, bytes, per_thread(nullptr));
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) {
  return enter(Symbol::cuMemcpyAsync, copy_later, to, from, bytes, legacy(s));
}
CUresult cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) {
  return enter(Symbol::cuMemcpyAsync_ptsz, copy_later, to, from, bytes, per_thread(s));
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return enter(Symbol::cuMemcpyHtoD_v2, copy_now, to, host(from), bytes, legacy(nullptr));
}
CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void* from, size_t bytes) {
  return enter(Symbol::cuMemcpyHtoD_v2_ptds, copy_now, to, host(from), bytes, per_thread(nullptr));
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream s) {
  return enter(Symbol::cuMemcpyHtoDAsync_v2, copy_later, to, host(from), bytes, legacy(s));
}
CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void* from, size_t bytes, CUstream s) {
  return enter(Symbol::cuMemcpyHtoDAsync_v2_ptsz, copy_later, to, host(from), bytes, per_thread(s));
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return enter(Symbol::cuMemcpyDtoH_v2, copy_now, host(to), from, bytes, legacy(nullptr));
}
CUresult cuMemcpyDtoH_v2_ptds(void* to, CUdeviceptr from, size_t bytes) {
  return enter(Symbol::cuMemcpyDtoH_v2_ptds, copy_now, host(to), from, bytes, per_thread(nullptr));
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream s) {
  return enter(Symbol::cuMemcpyDtoHAsync_v2, copy_later, host(to), from, bytes, legacy(s));
}
CUresult cuMemcpyDtoHAsync_v2_ptsz(void* to, CUdeviceptr from, size_t bytes, CUstream s) {
  return enter(Symbol::cuMemcpyDtoHAsync_v2_ptsz, copy_later, host(to), from, bytes, per_thread(s));
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return enter(Symbol::cuMemcpyDtoD_v2, copy_later, to, from, bytes, legacy(nullptr));
}
CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return enter(Symbol::cuMemcpyDtoD_v2_ptds, copy_later, to, from, bytes, per_thread(nullptr));
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) {
  return enter(Symbol::cuMemcpyDtoDAsync_v2, copy_later, to, from, bytes, legacy(s));
}
CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) {
  return enter(Symbol::cuMemcpyDtoDAsync_v2_ptsz, copy_later, to, from, bytes, per_thread(s));
}
CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes) {
  return enter(Symbol::cuMemcpyPeer, peer_later, to, to_context, from, from_context, bytes, legacy(nullptr));
}
CUresult cuMemcpyPeer_ptds(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                           size_t bytes) {
  return enter(Symbol::cuMemcpyPeer_ptds, peer_later, to, to_context, from, from_context, bytes, per_thread(nullptr));
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
                           CUstream s) {
  return enter(Symbol::cuMemcpyPeerAsync, peer_later, to, to_context, from, from_context, bytes, legacy(s));
}
CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                size_t bytes, CUstream s) {
  return enter(Symbol::cuMemcpyPeerAsync_ptsz, peer_later, to, to_context, from, from_context, bytes, per_thread(s));
}
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* d) { return enter(Symbol::cuMemcpy2D_v2, copy_2d_now, d, legacy(nullptr)); }
CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D* d) {
  return enter(Symbol::cuMemcpy2D_v2_ptds, copy_2d_now, d, per_thread(nullptr));
}
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* d) {
  return enter(Symbol::cuMemcpy2DUnaligned_v2, copy_2d_now, d, legacy(nullptr));
}
CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D* d) {
  return enter(Symbol::cuMemcpy2DUnaligned_v2_ptds, copy_2d_now, d, per_thread(nullptr));
}
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* d, CUstream s) {
  return enter(Symbol::cuMemcpy2DAsync_v2, copy_2d_later, d, legacy(s));
}
CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D* d, CUstream s) {
  return enter(Symbol::cuMemcpy2DAsync_v2_ptsz, copy_2d_later, d, per_thread(s));
}
CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  return enter(Symbol::cuMemsetD8_v2, set<unsigned char>, to, value, count, legacy(nullptr));
}
CUresult cuMemsetD8_v2_ptds(CUdeviceptr to, unsigned char value, size_t count) {
  return enter(Symbol::cuMemsetD8_v2_ptds, set<unsigned char>, to, value, count, per_thread(nullptr));
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream s) {
  return enter(Symbol::cuMemsetD8Async, set<unsigned char>, to, value, count, legacy(s));
}
CUresult cuMemsetD8Async_ptsz(CUdeviceptr to, unsigned char value, size_t count, CUstream s) {
  return enter(Symbol::cuMemsetD8Async_ptsz, set<unsigned char>, to, value, count, per_thread(s));
}
CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
  return enter(Symbol::cuMemsetD16_v2, set<unsigned short>, to, value, count, legacy(nullptr));
}
CUresult cuMemsetD16_v2_ptds(CUdeviceptr to, unsigned short value, size_t count) {
  return enter(Symbol::cuMemsetD16_v2_ptds, set<unsigned short>, to, value, count, per_thread(nullptr));
}
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream s) {
  return enter(Symbol::cuMemsetD16Async, set<unsigned short>, to, value, count, legacy(s));
}
CUresult cuMemsetD16Async_ptsz(CUdeviceptr to, unsigned short value, size_t count, CUstream s) {
  return enter(Symbol::cuMemsetD16Async_ptsz, set<unsigned short>, to, value, count, per_thread(s));
}
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) {
  return enter(Symbol::cuMemsetD32_v2, set<unsigned>, to, value, count, legacy(nullptr));
}
CUresult cuMemsetD32_v2_ptds(CUdeviceptr to, unsigned value, size_t count) {
  return enter(Symbol::cuMemsetD32_v2_ptds, set<unsigned>, to, value, count, per_thread(nullptr));
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream s) {
  return enter(Symbol::cuMemsetD32Async, set<unsigned>, to, value, count, legacy(s));
}
CUresult cuMemsetD32Async_ptsz(CUdeviceptr to, unsigned value, size_t count, CUstream s) {
  return enter(Symbol::cuMemsetD32Async_ptsz, set<unsigned>, to, value, count, per_thread(s));
}
