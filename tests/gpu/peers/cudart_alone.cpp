// A preload that answers the driver's allocations and frees at once: what is left in the pairs of a program under it
// is the CUDA runtime's own time, the floor of every allocator below cudaMalloc. The addresses it hands out belong to
// it (nothing is mapped there, so that a program that touches one ends), and are taken back into a few places of the
// thread; any other address, and a block larger than a place, is the driver's. Stands between the runtime and the
// driver as a tool would: the runtime's only dlsym asks for cuGetProcAddress_v2, by which it finds everything else.
// Says at the end how many places it handed out. For programs of this folder alone, in which nobody uses RTLD_NEXT.
#include <cudaTypedefs.h>
#include <dlfcn.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>

namespace {

constexpr std::uint64_t kPlace = std::uint64_t{128} << 10;  // at least the largest block of pairs.h
constexpr std::uint64_t kAddresses = std::uint64_t{64} << 30;

PFN_cuGetProcAddress_v12000 the_drivers = nullptr;  // set before the runtime can call anything below
PFN_cuMemAlloc_v3020 drivers_alloc = nullptr;
PFN_cuMemFree_v3020 drivers_free = nullptr;
PFN_cuMemAllocAsync_v11020 drivers_alloc_async = nullptr;
PFN_cuMemFreeAsync_v11020 drivers_free_async = nullptr;

struct Places {
  Places() {
    void* range = mmap(nullptr, kAddresses, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range != MAP_FAILED) begin = reinterpret_cast<std::uint64_t>(range);
    next = begin;
  }
  ~Places() {
    if (the_drivers) std::fprintf(stderr, "cudart_alone: %llu places\n", (unsigned long long)((next - begin) / kPlace));
  }
  bool has(std::uint64_t address) const { return address - begin < kAddresses && begin != 0; }

  std::uint64_t begin = 0;  // 0: there are none
  std::atomic<std::uint64_t> next = 0;
} places;

/// Places that the thread took back; what does not fit is not used again.
struct Returned {
  std::array<std::uint64_t, 64> address;
  std::size_t count;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local Returned returned{};

/// 0 where the driver has to serve.
std::uint64_t take(std::size_t bytes) {
  if (bytes == 0 || bytes > kPlace) return 0;
  if (returned.count > 0) return returned.address[--returned.count];
  const std::uint64_t address = places.next.fetch_add(kPlace, std::memory_order_relaxed);
  return places.has(address) ? address : 0;
}

bool give(std::uint64_t address) {
  if (!places.has(address)) return false;
  if (returned.count < returned.address.size()) returned.address[returned.count++] = address;
  return true;
}

CUresult CUDAAPI alloc(CUdeviceptr* out, std::size_t bytes) {
  const std::uint64_t place = out ? take(bytes) : 0;
  if (place == 0) return drivers_alloc(out, bytes);
  *out = place;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI free_block(CUdeviceptr block) { return give(block) ? CUDA_SUCCESS : drivers_free(block); }

CUresult CUDAAPI alloc_async(CUdeviceptr* out, std::size_t bytes, CUstream stream) {
  const std::uint64_t place = out ? take(bytes) : 0;
  if (place == 0) return drivers_alloc_async(out, bytes, stream);
  *out = place;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI free_async(CUdeviceptr block, CUstream stream) {
  return give(block) ? CUDA_SUCCESS : drivers_free_async(block, stream);
}

CUresult CUDAAPI get_proc_address(const char* name, void** out, int version, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult* status);

/// Keeps the driver's function where ours will find it, and gives ours instead.
template <class Function>
void stand_in(void** out, Function& drivers, Function ours) {
  drivers = reinterpret_cast<Function>(*out);
  *out = reinterpret_cast<void*>(ours);
}

CUresult CUDAAPI get_proc_address(const char* name, void** out, int version, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult* status) {
  const CUresult result = the_drivers(name, out, version, flags, status);
  if (result != CUDA_SUCCESS || !out || !*out) return result;
  if (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) return result;  // nobody here is compiled for these
  if (std::strcmp(name, "cuGetProcAddress") == 0 && version >= 12000) *out = reinterpret_cast<void*>(&get_proc_address);
  if (std::strcmp(name, "cuMemAlloc") == 0 && version >= 3020) stand_in(out, drivers_alloc, &alloc);
  if (std::strcmp(name, "cuMemFree") == 0 && version >= 3020) stand_in(out, drivers_free, &free_block);
  if (std::strcmp(name, "cuMemAllocAsync") == 0) stand_in(out, drivers_alloc_async, &alloc_async);
  if (std::strcmp(name, "cuMemFreeAsync") == 0) stand_in(out, drivers_free_async, &free_async);
  return result;
}

/// glibc has moved dlsym from one version to the other.
decltype(&dlsym) real_dlsym() {
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
    if (void* found = dlvsym(RTLD_NEXT, "dlsym", version)) return reinterpret_cast<decltype(&dlsym)>(found);
  }
  return nullptr;
}

}  // namespace

extern "C" void* dlsym(void* handle, const char* name) noexcept {
  static const auto real = real_dlsym();
  if (!real) return nullptr;
  void* found = real(handle, name);
  if (!found || std::strcmp(name, "cuGetProcAddress_v2") != 0) return found;
  the_drivers = reinterpret_cast<PFN_cuGetProcAddress_v12000>(found);
  return reinterpret_cast<void*>(&get_proc_address);
}
