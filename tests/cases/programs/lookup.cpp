// Names that begin like the driver's and are none of ours.
#include <dlfcn.h>

#include <string>

#include "tests/preload/core/program.h"

namespace {

std::string library_of(void* function) {
  Dl_info info{};
  return dladdr(function, &info) ? info.dli_fname : "";
}

}  // namespace

CASE(names) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  HOLDS(driver != nullptr);
  for (const char* name : {"cuInit", "cuDeviceGet", "cuLaunchKernel"})
    HOLDS(library_of(dlsym(driver, name)).find("libcuda.so") != std::string::npos);
  for (const char* name : {"cudnnCreate", "cublasCreate_v2", "curl_easy_init", "cuMemAlloc_v9", "cuMem"}) {
    HOLDS(dlsym(driver, name) == nullptr);
    HOLDS(dlsym(RTLD_DEFAULT, name) == nullptr);
  }
  void* math = dlopen("libm.so.6", RTLD_NOW);
  HOLDS(math != nullptr);
  HOLDS(dlsym(math, "cuMemAlloc_v2") == nullptr);  // the handle is honoured
  HOLDS(dlsym(math, "cos") != nullptr);
  auto init = reinterpret_cast<decltype(&cuInit)>(dlsym(driver, "cuInit"));
  OK(init(0));
  program::begin();
  auto allocate = reinterpret_cast<CUresult (*)(CUdeviceptr*, std::size_t)>(dlsym(driver, "cuMemAlloc_v2"));
  CUdeviceptr block = 0;
  OK(allocate(&block, 4096));
  OK(cuMemFree(block));
}
