// See helpers.h.
#include "tests/simcuda/selftest/helpers.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>

namespace gpupool::sim {
namespace {

const bool g_machine_chosen = [] {
  setenv("GPUPOOL_SIM_DEVICES", "2", 0);
  setenv("GPUPOOL_SIM_MEMORY", "256MiB", 0);
  return true;
}();

// Filled by the first session: loading a module is not allowed during most captures.
std::map<std::string, CUfunction>& kernels() {
  static std::map<std::string, CUfunction> known;
  return known;
}

void load_kernels() {
  CUmodule module = nullptr;
  CU(cuModuleLoadData(&module, "any image"));
  for (const char* name : {"fill", "check", "copy", "spin", "wait_flag", "set_flag", "fault"})
    CU(cuModuleGetFunction(&kernels()[name], module, name));
  CU(cuModuleUnload(module));
}

void launch(const char* name, CUstream stream, void** parameters) {
  CU(cuLaunchKernel(kernels().at(name), 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
}

}  // namespace

Session::Session() {
  CU(cuInit(0));
  CU(cuDevicePrimaryCtxRetain(&context, 0));
  CU(cuCtxSetCurrent(context));
  simcuda_set_schedule("late", 1);
  if (kernels().empty()) load_kernels();
}

Session::~Session() {
  simcuda_set_faults("");
  cuDevicePrimaryCtxReset(0);
  cuDevicePrimaryCtxReset(1);
  simcuda_empty_pools();
  cuCtxSetCurrent(nullptr);
}

CUcontext second_card() {
  CUcontext context = nullptr;
  CU(cuDevicePrimaryCtxRetain(&context, 1));
  return context;
}

uint64_t used_bytes() {
  size_t free = 0;
  size_t total = 0;
  CU(cuMemGetInfo(&free, &total));
  return total - free;
}

CUstream make_stream(unsigned flags) {
  CUstream stream = nullptr;
  CU(cuStreamCreate(&stream, flags));
  return stream;
}

CUevent make_event() {
  CUevent event = nullptr;
  CU(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  return event;
}

CUdeviceptr allocate(size_t bytes) {
  CUdeviceptr address = 0;
  CU(cuMemAlloc(&address, bytes));
  return address;
}

void fill(CUstream stream, CUdeviceptr to, uint64_t bytes, uint32_t seed) {
  void* parameters[] = {&to, &bytes, &seed};
  launch("fill", stream, parameters);
}

void check(CUstream stream, CUdeviceptr at, uint64_t bytes, uint32_t seed, CUdeviceptr count) {
  void* parameters[] = {&at, &bytes, &seed, &count};
  launch("check", stream, parameters);
}

void spin(CUstream stream, uint64_t ticks) {
  void* parameters[] = {&ticks};
  launch("spin", stream, parameters);
}

void wait_flag(CUstream stream, CUdeviceptr flag) {
  void* parameters[] = {&flag};
  launch("wait_flag", stream, parameters);
}

void set_flag(CUstream stream, CUdeviceptr flag) {
  void* parameters[] = {&flag};
  launch("set_flag", stream, parameters);
}

void fault(CUstream stream) { launch("fault", stream, nullptr); }

Counter::Counter() {
  CU(cuMemHostAlloc(reinterpret_cast<void**>(&cell), sizeof *cell, 0));
  *cell = 0;
}

Counter::~Counter() { cuMemFreeHost(cell); }

CUmemAllocationProp device_memory(int device) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = device;
  return prop;
}

CUresult open_to(int device, CUdeviceptr at, size_t bytes) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return cuMemSetAccess(at, bytes, &access, 1);
}

Mapped::Mapped(size_t bytes) : size(bytes) {
  const CUmemAllocationProp prop = device_memory();
  CU(cuMemAddressReserve(&at, size, 0, 0, 0));
  CU(cuMemCreate(&handle, size, &prop, 0));
  CU(cuMemMap(at, size, 0, handle, 0));
  CU(open_to(0, at, size));
}

Mapped::~Mapped() {
  cuMemUnmap(at, size);
  cuMemRelease(handle);
  cuMemAddressFree(at, size);
}

Ended run_alone(const std::string& test_case, const std::string& environment) {
  const std::string command =
      environment + " /proc/" + std::to_string(getpid()) + "/exe '" + test_case + "' 2>&1 >/dev/null";
  Ended ended;
  FILE* pipe = popen(("exec env " + command).c_str(), "r");
  char buffer[512];
  while (size_t count = std::fread(buffer, 1, sizeof buffer, pipe)) ended.output.append(buffer, count);
  const int status = pclose(pipe);
  ended.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

}  // namespace gpupool::sim
