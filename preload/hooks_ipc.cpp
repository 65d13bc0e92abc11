// Memory for other processes, the old interface: cuIpcGetMemHandle and its other end. A plain block of the pool has a
// handle of ours; what the driver served has the driver's.
#include "preload/real.h"

#include "device/context.h"
#include "preload/serve.h"
#include "preload/streams.h"

namespace gpupool::hook {
namespace {

// A slab of an arena has a handle of the driver's own. A block that begins its slab needs no other, and an importer
// without the preload can open that one too.
CUresult slab_below(const BlockInfo& block, Slab& slab) {
  CUdeviceptr begin = 0;
  CUresult result = real::cuMemGetAddressRange_v2(&begin, nullptr, block.address);
  if (result == CUDA_SUCCESS) result = real::cuIpcGetMemHandle(&slab.handle, begin);
  slab.offset = block.address - begin;
  return result;
}

// One that lives: what another thread has destroyed is current still.
bool has_context() {
  CUdevice device = 0;
  return setup().api.cuCtxGetDevice(&device) == CUDA_SUCCESS;
}

template <class Ask>
CUresult open(CUdeviceptr* address, const CUipcMemHandle& handle, unsigned flags, Ask ask) {
  const Guard guard;
  const bool known = !guard.nested() && address && Imports::knows(handle);
  const StreamHome here = known ? current_home(setup().api, process().captures) : StreamHome{};
  if (!known || here.result != CUDA_SUCCESS || !here.context) return ask();
  if (const CUresult fault = fault_on(CU_STREAM_LEGACY, nullptr)) return fault;
  if (flags & ~unsigned{CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS}) return CUDA_ERROR_INVALID_VALUE;
  const auto shared = unpack(handle);
  if (shared && process().exports.gave(*shared)) return CUDA_ERROR_INVALID_CONTEXT;  // a process cannot open its own
  return process().imports.open(guard, handle, here.context, flags, *address);
}

}  // namespace

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  const Guard guard;
  Home* home = guard.nested() ? nullptr : process().registry.at(address);
  if (!home || !handle || !has_context()) return real::cuIpcGetMemHandle(handle, address);
  if (const CUresult fault = fault_on(CU_STREAM_LEGACY, home)) return driver_said(*home, fault);
  BlockInfo block;
  if (!home->tape()->find(address, block) || block.stream_ordered || !home->shareable())
    return CUDA_ERROR_INVALID_VALUE;
  std::optional<Slab> slab;
  if (!home->movable()) {
    const CUresult result = slab_below(block, slab.emplace());
    if (result != CUDA_SUCCESS) return result;
  }
  if (slab && slab->offset == 0) {
    // Whoever opens it holds a reference to the slab, and tells nobody.
    if (!home->tape()->share(block.address, Sharing::kReferenced)) return CUDA_ERROR_INVALID_VALUE;
    *handle = slab->handle;
    SizedHandle::put(*handle, block.requested);
    return CUDA_SUCCESS;
  }
  return process().exports.add(guard, *home, block, slab, *handle) ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
  return open(address, handle, flags, [&] { return real::cuIpcOpenMemHandle(address, handle, flags); });
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
  return open(address, handle, flags, [&] { return real::cuIpcOpenMemHandle_v2(address, handle, flags); });
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  const Guard guard;
  const bool any = !guard.nested() && process().imports.any();
  switch (any ? process().imports.close(guard, address) : Imports::Closed::kNotOurs) {
    case Imports::Closed::kYes:
      return CUDA_SUCCESS;
    case Imports::Closed::kNotOpen:
      return CUDA_ERROR_INVALID_VALUE;
    case Imports::Closed::kNotOurs:
      break;
  }
  return real::cuIpcCloseMemHandle(address);
}

}  // namespace gpupool::hook
