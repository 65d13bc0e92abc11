// What needs processes of its own: programs that hang, fork, end, share memory or run on another driver.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "tests/simcuda/selftest/helpers.h"

using namespace gpupool::sim;

TEST_CASE("hidden: a flag that nobody sets", "[.alone]") {
  Session session;
  const CUdeviceptr flag = allocate(4);
  CU(cuMemsetD32(flag, 0, 1));
  CU(cuCtxSynchronize());
  wait_flag(make_stream(), flag);
  cuCtxSynchronize();
}

TEST_CASE("hidden: a flag that is set behind the free that waits for it", "[.alone]") {
  Session session;
  const CUdeviceptr flag = allocate(4);
  CU(cuMemsetD32(flag, 0, 1));
  CU(cuCtxSynchronize());
  wait_flag(make_stream(), flag);
  cuMemFree(allocate(16));
  set_flag(make_stream(), flag);
}

TEST_CASE("hidden: an event that never completes is waited for", "[.alone]") {
  Session session;
  const CUevent event = make_event();
  CU(cuEventRecord(event, make_stream()));
  cuEventSynchronize(event);
}

TEST_CASE("a program that can never go on is ended, loudly", "[processes]") {
  const Ended flag = run_alone("hidden: a flag that nobody sets");
  CHECK(flag.signal == SIGABRT);
  CHECK(flag.output.find("simcuda: deadlock") != std::string::npos);
  CHECK(flag.output.find("wait_flag") != std::string::npos);
  CHECK(run_alone("hidden: a flag that is set behind the free that waits for it").signal == SIGABRT);
  CHECK(run_alone("hidden: an event that never completes is waited for", "GPUPOOL_SIM_FAULT=cuEventRecord:1=never")
            .signal == SIGABRT);
}

TEST_CASE("hidden: an old driver", "[.alone]") {
  Session session;
  void* function = &session;
  CUdriverProcAddressQueryResult status;
  int version = 0;
  CU(cuDriverGetVersion(&version));
  REQUIRE(version == 12020);
  CU(cuGetProcAddress("cuCtxRecordEvent", &function, 13000, 0, &status));
  REQUIRE(function == nullptr);
  CU(cuGetProcAddress("cuStreamGetId", &function, 13000, 0, &status));
  REQUIRE(function != nullptr);
  REQUIRE(cuCtxRecordEvent(session.context, make_event()) == CUDA_ERROR_NOT_SUPPORTED);
}

TEST_CASE("an older driver lacks what came later", "[processes]") {
  CHECK(run_alone("hidden: an old driver", "GPUPOOL_SIM_DRIVER_VERSION=12020").status == 0);
}

TEST_CASE("hidden: calls at exit", "[.alone]") {
  Session session;
  static const CUdeviceptr block = allocate(16);
  std::atexit([] { std::fprintf(stderr, "atexit %d\n", cuMemFree(block)); });
  CUcontext kept = nullptr;
  CU(cuDevicePrimaryCtxRetain(&kept, 0));
  spin(make_stream(), 10);
}

TEST_CASE("the driver answers until it is gone, and nothing crashes at exit", "[processes]") {
  const Ended ended = run_alone("hidden: calls at exit");
  CHECK(ended.status == 0);
  CHECK(ended.output.find("atexit") != std::string::npos);
}

TEST_CASE("hidden: a traced program", "[.alone]") {
  Session session;
  allocate(1000);
}

TEST_CASE("the log of calls shows arguments and results", "[processes]") {
  const std::string path = "/tmp/simcuda-trace-" + std::to_string(getpid());
  CHECK(run_alone("hidden: a traced program", "GPUPOOL_SIM_TRACE=" + path).status == 0);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  unlink(path.c_str());
  CHECK(text.str().find("cuMemAlloc_v2(*0x") != std::string::npos);
  CHECK(text.str().find(", 1000) = 0") != std::string::npos);
}

TEST_CASE("a forked child has no driver, and is not blocked by its parent's locks", "[processes]") {
  Session session;
  const pid_t child = fork();
  if (child == 0) {
    CUdeviceptr p = 0;
    const bool refused = cuMemAlloc(&p, 16) == CUDA_ERROR_NOT_INITIALIZED && cuInit(0) == CUDA_ERROR_NOT_INITIALIZED;
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(WEXITSTATUS(status) == 0);
}

namespace {

constexpr const char* kHandleVariable = "SIMCUDA_SELFTEST_HANDLE";

std::string to_hexadecimal(const CUipcMemHandle& handle) {
  std::string text;
  for (const char byte : handle.reserved) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
    text += digits;
  }
  return text;
}

CUipcMemHandle from_environment() {
  CUipcMemHandle handle{};
  const char* text = std::getenv(kHandleVariable);
  for (size_t i = 0; text && i < sizeof handle.reserved; ++i) {
    unsigned byte = 0;
    std::sscanf(text + 2 * i, "%2x", &byte);
    handle.reserved[i] = static_cast<char>(byte);
  }
  return handle;
}

}  // namespace

TEST_CASE("hidden: opens a handle of another process", "[.alone]") {
  Session session;
  Counter wrong;
  const CUipcMemHandle handle = from_environment();
  CUdeviceptr p = 0;
  CU(cuIpcOpenMemHandle(&p, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  check(CU_STREAM_LEGACY, p, 4 * kMiB, 1, wrong.address());
  CU(cuCtxSynchronize());
  REQUIRE(wrong.value() == 0);
  REQUIRE(handle.reserved[63] == 9);
  fill(CU_STREAM_LEGACY, p, 4 * kMiB, 2);
  CU(cuCtxSynchronize());
  REQUIRE(cuMemFree(p) == CUDA_ERROR_INVALID_VALUE);
  CU(cuIpcCloseMemHandle(p));
}

TEST_CASE("memory is shared by handle; an interior pointer names the base, and the last 8 bytes are free",
          "[processes]") {
  Session session;
  Counter wrong;
  const CUdeviceptr p = allocate(4 * kMiB);
  fill(CU_STREAM_LEGACY, p, 4 * kMiB, 1);
  CU(cuCtxSynchronize());
  CUipcMemHandle handle;
  CU(cuIpcGetMemHandle(&handle, p + 12345));
  for (int i = 56; i < 64; ++i) CHECK(handle.reserved[i] == 0);
  CUdeviceptr own = 0;
  CHECK(cuIpcOpenMemHandle(&own, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) != CUDA_SUCCESS);
  handle.reserved[63] = 9;
  const std::string environment = std::string(kHandleVariable) + "=" + to_hexadecimal(handle);
  CHECK(run_alone("hidden: opens a handle of another process", environment).status == 0);
  check(CU_STREAM_LEGACY, p, 4 * kMiB, 2, wrong.address());
  CU(cuCtxSynchronize());
  CHECK(wrong.value() == 0);
}

TEST_CASE("hidden: a neighbour on a card that is nearly full", "[.alone]") {
  Session session;
  REQUIRE(used_bytes() == 200 * kMiB);
  CUdeviceptr p = 0;
  REQUIRE(cuMemAlloc(&p, 100 * kMiB) == CUDA_ERROR_OUT_OF_MEMORY);
  REQUIRE(cuMemAlloc(&p, 50 * kMiB) == CUDA_SUCCESS);
  // Ends without a free.
  _exit(0);
}

TEST_CASE("hidden: an owner of most of a card", "[.alone]") {
  Session session;
  allocate(200 * kMiB);
  REQUIRE(run_alone("hidden: a neighbour on a card that is nearly full").status == 0);
  REQUIRE(used_bytes() == 200 * kMiB);
}

TEST_CASE("processes share a card when they are told to", "[processes]") {
  const std::string path = "/tmp/simcuda-card-" + std::to_string(getpid());
  CHECK(run_alone("hidden: an owner of most of a card", "GPUPOOL_SIM_CARD=" + path).status == 0);
  unlink(path.c_str());
}
