// Little stack, few or many descriptors, no host memory.
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "tests/preload/core/program.h"

namespace {

void* allocate_and_free(void* context) {
  OK(cuCtxSetCurrent(static_cast<CUcontext>(context)));
  const CUstream stream = program::new_stream();
  for (int i = 0; i < 50; ++i) {
    CUdeviceptr plain = 0;
    CUdeviceptr ordered = 0;
    OK(cuMemAlloc(&plain, 1u << (i % 24)));
    OK(cuMemAllocAsync(&ordered, 1u << (i % 24), stream));
    OK(cuMemFree(plain));
    OK(cuMemFreeAsync(ordered, stream));
  }
  OK(cuStreamDestroy(stream));
  return nullptr;
}

void use_memory() {
  CUdeviceptr block = 0;
  OK(cuMemAlloc(&block, 1 << 20));
  OK(cuMemFree(block));
}

// Takes descriptors until there are `count` of them, or none left.
int take_descriptors(int count) {
  int taken = 0;
  while (taken < count && open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) ++taken;
  return taken;
}

}  // namespace

CASE(small_stacks) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  EQUAL(pthread_attr_setstacksize(&attributes, 64 << 10), 0);
  OK(cuInit(0));
  const CUcontext context = program::begin();
  std::vector<pthread_t> threads(4);
  for (pthread_t& thread : threads) EQUAL(pthread_create(&thread, &attributes, allocate_and_free, context), 0);
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
}

CASE(no_descriptors) {
  program::begin();
  use_memory();
  const rlimit few{64, 64};
  EQUAL(setrlimit(RLIMIT_NOFILE, &few), 0);
  take_descriptors(INT_MAX);
  for (int i = 0; i < 100; ++i) use_memory();
}

// SIGXFSZ keeps its default, which ends the process.
CASE(no_disk) {
  program::begin();
  use_memory();
  const rlimit none{0, 0};
  EQUAL(setrlimit(RLIMIT_FSIZE, &none), 0);
}

CASE(little_disk) {
  program::begin();
  use_memory();
  const rlimit little{512, 512};
  EQUAL(setrlimit(RLIMIT_FSIZE, &little), 0);
}

CASE(vanishing_disk) {
  program::begin();
  use_memory();
  // Threads of ours may add a file between the last look at the folder and its removal.
  const std::filesystem::path disk = std::getenv("CASE_FOLDER");
  for (std::error_code busy; std::filesystem::exists(disk);) std::filesystem::remove_all(disk, busy);
  for (int i = 0; i < 1000; ++i) use_memory();
  usleep(200'000);  // a trace's writer comes by
}

// So does SIGPIPE.
CASE(closed_pipe) {
  program::begin();
  use_memory();
  int ends[2];
  EQUAL(pipe(ends), 0);
  dup2(ends[1], STDERR_FILENO);
  close(ends[0]);
}

CASE(many_descriptors) {
  rlimit most{};
  getrlimit(RLIMIT_NOFILE, &most);
  most.rlim_cur = most.rlim_max;
  EQUAL(setrlimit(RLIMIT_NOFILE, &most), 0);
  take_descriptors(10'000);
  program::begin();
  use_memory();
}

// Calls may fail. More blocks than the first tables hold, pieces of all sizes, and a context that ends.
CASE(little_host_memory) {
  program::begin();
  const CUstream stream = program::new_stream();
  std::vector<CUdeviceptr> blocks;
  unsigned random = 1;
  const auto pick = [&](unsigned below) { return (random = random * 1664525u + 1013904223u) / 65536u % below; };
  for (int i = 0; i < 9000; ++i) {
    if (blocks.size() > 50 && pick(3) == 0) {
      CUdeviceptr& freed = blocks[pick(static_cast<unsigned>(blocks.size()))];
      (void)(pick(2) ? cuMemFreeAsync(freed, stream) : cuMemFree(freed));
      freed = blocks.back();
      blocks.pop_back();
    } else if (CUdeviceptr block = 0; cuMemAllocAsync(&block, 512 * (1 + pick(64)), stream) == CUDA_SUCCESS) {
      blocks.push_back(block);
    }
  }
  OK(cuStreamSynchronize(stream));
  for (const CUdeviceptr block : blocks) (void)cuMemFreeAsync(block, stream);
  OK(cuDevicePrimaryCtxReset(0));
  CUcontext context = nullptr;
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  use_memory();
}
