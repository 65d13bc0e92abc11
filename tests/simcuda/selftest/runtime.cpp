// The stand-in runtime, linked statically as many programs have it: which driver calls it makes, and what it answers.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/simcuda/simcuda.h"

#define RT(call) REQUIRE((call) == cudaSuccess)

namespace {

const bool g_machine_chosen = [] {
  setenv("GPUPOOL_SIM_DEVICES", "2", 0);
  return true;
}();

// The driver is found by name, as the runtime finds it.
uint64_t calls(const char* symbol) {
  static const auto count =
      reinterpret_cast<decltype(&simcuda_calls)>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), "simcuda_calls"));
  return count(symbol);
}

}  // namespace

TEST_CASE("the runtime finds the driver through cuGetProcAddress", "[runtime]") {
  RT(cudaFree(nullptr));
  CHECK(calls("cuInit") == 1);
  CHECK(calls("cuGetProcAddress_v2") > 50);
  CHECK(calls("cuGetProcAddress") == 0);
}

TEST_CASE("cudaMalloc and its family", "[runtime]") {
  void* p = &p;
  const uint64_t before = calls("cuMemAlloc_v2");
  RT(cudaMalloc(&p, 0));
  CHECK(p == nullptr);
  CHECK(calls("cuMemAlloc_v2") == before);
  CHECK(cudaMalloc(nullptr, 16) == cudaErrorInvalidValue);
  CHECK(cudaMalloc(&p, SIZE_MAX) == cudaErrorMemoryAllocation);
  CHECK(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaSuccess);
  RT(cudaMalloc(&p, 1000));
  CHECK(calls("cuMemAlloc_v2") == before + 2);
  RT(cudaFree(p));
  CHECK(cudaFree(p) == cudaErrorInvalidValue);
  size_t pitch = 0;
  RT(cudaMallocPitch(&p, &pitch, 200, 100));
  CHECK(pitch == 512);
  RT(cudaFree(p));
  cudaPitchedPtr pitched{};
  RT(cudaMalloc3D(&pitched, cudaExtent{100, 10, 10}));
  CHECK(calls("cuMemAllocPitch_v2") == 2);
  RT(cudaFree(pitched.ptr));
  RT(cudaMallocAsync(&p, 1000, nullptr));
  RT(cudaFree(p));
  CHECK(calls("cuMemAllocAsync") == 1);
  CHECK(calls("cuMemAllocAsync_ptsz") == 0);
  CHECK(calls("cuMemFreeAsync") == 0);
}

TEST_CASE("copies arrive", "[runtime]") {
  std::vector<char> source(100000, 7);
  std::vector<char> result(source.size());
  void* p = nullptr;
  RT(cudaMalloc(&p, source.size()));
  RT(cudaMemcpy(p, source.data(), source.size(), cudaMemcpyHostToDevice));
  RT(cudaMemset(p, 9, 10));
  RT(cudaMemcpy(result.data(), p, result.size(), cudaMemcpyDefault));
  CHECK(result[9] == 9);
  CHECK(result[10] == 7);
  RT(cudaFree(p));
}

TEST_CASE("attributes of pointers", "[runtime]") {
  void* p = nullptr;
  int local = 0;
  cudaPointerAttributes attributes{};
  RT(cudaMalloc(&p, 16));
  RT(cudaPointerGetAttributes(&attributes, p));
  CHECK(attributes.type == cudaMemoryTypeDevice);
  CHECK(attributes.devicePointer == p);
  RT(cudaFree(p));
  RT(cudaPointerGetAttributes(&attributes, &local));
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
  RT(cudaHostAlloc(&p, 16, 0));
  RT(cudaPointerGetAttributes(&attributes, p));
  CHECK(attributes.type == cudaMemoryTypeHost);
  RT(cudaFreeHost(p));
}

TEST_CASE("a reset frees without a call for each block, and the next call starts again", "[runtime]") {
  void* p = nullptr;
  RT(cudaMalloc(&p, size_t{8} << 20));
  const uint64_t frees = calls("cuMemFree_v2");
  RT(cudaDeviceReset());
  CHECK(calls("cuMemFree_v2") == frees);
  CHECK(calls("cuDevicePrimaryCtxReset") == 1);
  CHECK(calls("cuDevicePrimaryCtxReset_v2") == 0);
  size_t free = 0;
  size_t total = 0;
  RT(cudaMemGetInfo(&free, &total));
  CHECK(free == total);
  CHECK(cudaFree(p) == cudaErrorInvalidValue);
}

TEST_CASE("devices are per thread, and memory is freed from any of them", "[runtime]") {
  void* p = nullptr;
  RT(cudaSetDevice(1));
  RT(cudaMalloc(&p, 16));
  std::thread other([] {
    int device = -1;
    CHECK(cudaGetDevice(&device) == cudaSuccess);
    CHECK(device == 0);
  });
  other.join();
  RT(cudaSetDevice(0));
  RT(cudaFree(p));
  CHECK(cudaSetDevice(2) == cudaErrorInvalidDevice);
}

TEST_CASE("a captured graph runs", "[runtime]") {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  void* p = nullptr;
  unsigned char result = 0;
  RT(cudaMalloc(&p, 16));
  RT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  RT(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  RT(cudaMemsetAsync(p, 5, 16, stream));
  RT(cudaStreamEndCapture(stream, &graph));
  RT(cudaGraphInstantiate(&exec, graph, 0));
  RT(cudaGraphLaunch(exec, stream));
  RT(cudaStreamSynchronize(stream));
  RT(cudaMemcpy(&result, p, 1, cudaMemcpyDeviceToHost));
  CHECK(result == 5);
  RT(cudaGraphExecDestroy(exec));
  RT(cudaGraphDestroy(graph));
  RT(cudaStreamDestroy(stream));
  RT(cudaFree(p));
}

TEST_CASE("kernels of a library are launched", "[runtime]") {
  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = nullptr;
  RT(cudaLibraryLoadData(&library, "any image", nullptr, nullptr, 0, nullptr, nullptr, 0));
  RT(cudaLibraryGetKernel(&kernel, library, "fill"));
  void* p = nullptr;
  uint64_t bytes = 256;
  uint32_t seed = 3;
  unsigned char result[256];
  RT(cudaMalloc(&p, bytes));
  void* parameters[] = {&p, &bytes, &seed};
  RT(cudaLaunchKernel(kernel, dim3(1), dim3(1), parameters, 0, nullptr));
  RT(cudaMemcpy(result, p, bytes, cudaMemcpyDeviceToHost));
  CHECK(result[200] == simcuda_pattern(3, 200));
  RT(cudaFree(p));
  RT(cudaLibraryUnload(library));
}
