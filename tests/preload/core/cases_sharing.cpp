// Programs that share a card. Each is unmodified CUDA; files tell them when to go on, so that their order is the
// test's.
#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/preload/core/program.h"

namespace {

std::size_t mebibytes(const char* variable) { return std::strtoul(std::getenv(variable), nullptr, 10) << 20; }

std::string place(const char* name) { return std::string(std::getenv("CASE_FOLDER")) + "/" + name; }

void tell(const char* name) { close(open(place(name).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)); }

void wait_until_told(const char* name) {
  while (access(place(name).c_str(), F_OK) != 0) usleep(1000);
}

std::vector<CUdeviceptr> take(std::size_t bytes, std::size_t piece) {
  std::vector<CUdeviceptr> blocks;
  for (std::size_t taken = 0; taken < bytes; taken += piece) {
    CUdeviceptr block = 0;
    OK(cuMemAlloc(&block, piece));
    blocks.push_back(block);
  }
  return blocks;
}

}  // namespace

// Holds CASE_LIVE MiB, and makes no call while it waits.
CASE(holder) {
  program::begin();
  const std::vector<CUdeviceptr> blocks = take(mebibytes("CASE_LIVE"), 32 << 20);
  OK(cuCtxSynchronize());
  tell("held");
  wait_until_told("done");
  for (const CUdeviceptr block : blocks) OK(cuMemFree(block));
  // What it gave away is free again once the other has ended.
  for (const CUdeviceptr block : take(mebibytes("CASE_AGAIN"), 32 << 20)) OK(cuMemFree(block));
}

// Comes later, and wants CASE_LIVE MiB in pieces of CASE_PIECE.
CASE(latecomer) {
  program::begin();
  for (const CUdeviceptr block : take(mebibytes("CASE_LIVE"), mebibytes("CASE_PIECE"))) OK(cuMemFree(block));
}

// The same with memory that no pool serves.
CASE(latecomer_of_handles) {
  program::begin();
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemGenericAllocationHandle handle = 0;
  OK(cuMemCreate(&handle, mebibytes("CASE_LIVE"), &prop, 0));
  OK(cuMemRelease(handle));
}

// Takes 32 MiB at a time until there is no more; says how much there was.
CASE(takes_all) {
  program::begin();
  std::size_t taken = 0;
  CUdeviceptr block = 0;
  CUresult result = CUDA_SUCCESS;
  while ((result = cuMemAlloc(&block, 32 << 20)) == CUDA_SUCCESS) taken += 32;
  EQUAL(result, CUDA_ERROR_OUT_OF_MEMORY);
  std::printf("%zu\n", taken);
}

// Believes what the driver says to be free, as who sizes a cache of its own does, and takes that much less CASE_LIVE
// MiB.
CASE(latecomer_that_looks) {
  program::begin();
  const std::size_t first = program::free_memory();
  const std::size_t spared = mebibytes("CASE_LIVE");
  HOLDS(first > spared);
  CUdeviceptr block = 0;
  OK(cuMemAlloc(&block, 32 << 20));
  const std::size_t second = program::free_memory();
  HOLDS(second <= first - (32 << 20));
  HOLDS(second + (256 << 20) > first);
  OK(cuMemAlloc(&block, second - spared));
  std::printf("%zu\n", first >> 20);
}

CASE(sees_its_cap) {
  program::begin();
  HOLDS(program::free_memory() <= mebibytes("CASE_CAP"));
  CUdeviceptr block = 0;
  OK(cuMemAlloc(&block, 32 << 20));
  HOLDS(program::free_memory() <= mebibytes("CASE_CAP") - (32 << 20));
}
