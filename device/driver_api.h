// The driver as gpupool calls it: one typed pointer per row of driver_api.def, never one of our own hooks.
// Filled once, before the first use, and only read afterwards: any thread, no lock.
// The pointers come from the driver's own cuGetProcAddress where it exists, because that is where the hooks' real
// functions come from too; else from the library's symbol of the exported name.
#pragma once

#include <cuda.h>

namespace gpupool {

struct DriverApi {
#define DRIVER(symbol, base, version, need) decltype(&::symbol) symbol = nullptr;
#include "device/driver_api.def"
#undef DRIVER

  /// The loader's own lookup: a symbol of the library `handle`, or null.
  using Lookup = void* (*)(void* handle, const char* name);

  /// Looks every row up in `driver`, the handle of libcuda.so.1. Null when all that is required is there, else the name
  /// of the first function that is missing. Needs no cuInit; calls nothing but lookups and cuDriverGetVersion.
  const char* load(Lookup lookup, void* driver);

  /// Physical memory apart from addresses: the tape. CUDA 10.2.
  bool has_vmm() const {
    return cuMemGetAllocationGranularity && cuMemAddressReserve && cuMemAddressFree && cuMemCreate && cuMemRelease &&
           cuMemMap && cuMemUnmap && cuMemSetAccess;
  }

  /// Handles between processes, by file descriptors.
  bool has_shareable_handles() const { return cuMemExportToShareableHandle && cuMemImportFromShareableHandle; }

  /// Records and waits of whole contexts. CUDA 12.5.
  bool has_context_events() const { return cuCtxRecordEvent != nullptr; }
};

}  // namespace gpupool
