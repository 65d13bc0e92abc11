// cuGetProcAddress: the newest function of a base name that the asked version and the simulated driver know. All
// addresses are taken inside this library, so a preload that exports the same names does not get in between.
#include <cstring>

#include "tests/simcuda/call.h"
#include "tests/simcuda/settings.h"

namespace gpupool::sim {
namespace {

struct Entry {
  const char* base;
  int version;
  bool per_thread;
  void* function;
};

#define SIM(symbol, base, version, suffix) \
  static_assert(std::is_same_v<decltype(&::symbol), PFN_##base##_v##version##suffix>, #symbol " has another type");
#include "tests/simcuda/symbols.def"
#undef SIM

const Entry* entries() {
  static const Entry table[] = {
#define SIM(symbol, base, version, suffix) {#base, version, sizeof(#suffix) > 1, reinterpret_cast<void*>(&::symbol)},
#include "tests/simcuda/symbols.def"
#undef SIM
      {nullptr, 0, false, nullptr}};
  return table;
}

struct Found {
  void* function = nullptr;
  int version = 0;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
};

Found find(const char* base, int version, bool per_thread) {
  Found best;
  bool best_is_per_thread = false;
  for (const Entry* entry = entries(); entry->base; ++entry) {
    if (std::strcmp(entry->base, base) != 0 || entry->version > settings().driver_version) continue;
    if (entry->per_thread && !per_thread) continue;
    if (entry->version > version) {
      if (!best.function) best.status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
      continue;
    }
    // Among variants of one version the asked one; else the newest.
    const bool better = !best.function || entry->per_thread > best_is_per_thread ||
                        (entry->per_thread == best_is_per_thread && entry->version > best.version);
    if (!better) continue;
    best = Found{entry->function, entry->version, CU_GET_PROC_ADDRESS_SUCCESS};
    best_is_per_thread = entry->per_thread;
  }
  return best;
}

CUresult get(const char* base, void** out, int version, cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  constexpr cuuint64_t kKnown = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (!base || !out || flags & ~kKnown || flags == kKnown) return CUDA_ERROR_INVALID_VALUE;
  const Found found = find(base, version, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  *out = found.function;
  // Who asks for the status learns it there; who does not gets an error.
  if (status) return *status = found.status, CUDA_SUCCESS;
  return found.function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult get_v1(const char* base, void** out, int version, cuuint64_t flags) {
  return get(base, out, version, flags, nullptr);
}

CUresult export_table(const void** out, const CUuuid*) {
  if (out) *out = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

}  // namespace
}  // namespace gpupool::sim

using namespace gpupool::sim;

CUresult cuGetProcAddress(const char* base, void** out, int version, cuuint64_t flags) {
  return enter_before_init(Symbol::cuGetProcAddress, get_v1, base, out, version, flags);
}
CUresult cuGetProcAddress_v2(const char* base, void** out, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  return enter_before_init(Symbol::cuGetProcAddress_v2, get, base, out, version, flags, status);
}
CUresult cuGetExportTable(const void** out, const CUuuid* id) {
  return enter_before_init(Symbol::cuGetExportTable, export_table, out, id);
}
