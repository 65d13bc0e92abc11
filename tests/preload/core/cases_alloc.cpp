// Plain memory: return codes, alignment, pitch, attributes, free memory.
#include <cstring>
#include <thread>
#include <vector>

#include "tests/preload/core/program.h"

using program::attribute;

CASE(plain) {
  program::begin();
  std::vector<CUdeviceptr> blocks;
  for (std::size_t bytes : {1, 511, 512, 513, 4097, 1 << 20, 40 << 20}) {
    CUdeviceptr block = 0;
    OK(cuMemAlloc(&block, bytes));
    EQUAL(block % 512, 0u);
    blocks.push_back(block);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) HOLDS(blocks[i] != blocks[j]);
  }
  for (CUdeviceptr block : blocks) OK(cuMemFree(block));
}

CASE(codes) {
  CUdeviceptr block = 0;
  EQUAL(cuMemAlloc(&block, 5), CUDA_ERROR_NOT_INITIALIZED);
  OK(cuInit(0));
  EQUAL(cuMemAlloc(&block, 5), CUDA_ERROR_INVALID_CONTEXT);
  OK(cuMemFree(0));
  program::begin();
  EQUAL(cuMemAlloc(&block, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemAlloc(&block, ~std::size_t{0}), CUDA_ERROR_OUT_OF_MEMORY);
  EQUAL(cuMemAlloc(&block, ~std::size_t{0} - 511), CUDA_ERROR_OUT_OF_MEMORY);
  EQUAL(cuMemAlloc(nullptr, 16), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemAlloc(&block, 4096));
  EQUAL(cuMemFree(block + 512), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemFree(0x1000), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFree(block));
  EQUAL(cuMemFree(block), CUDA_ERROR_INVALID_VALUE);
}

CASE(pitch) {
  program::begin();
  CUdeviceptr block = 0;
  std::size_t pitch = 0;
  const std::pair<std::size_t, std::size_t> widths[] = {{1, 512},    {511, 512},   {512, 512},
                                                        {513, 1024}, {2000, 2048}, {100000, 100352}};
  for (const auto& [width, expected] : widths) {
    OK(cuMemAllocPitch(&block, &pitch, width, 3, 4));
    EQUAL(pitch, expected);
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    OK(cuMemGetAddressRange(&base, &bytes, block + 100));
    EQUAL(base, block);
    EQUAL(bytes, 3 * expected);
    OK(cuMemFree(block));
  }
  EQUAL(cuMemAllocPitch(&block, &pitch, 0, 3, 4), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemAllocPitch(&block, &pitch, 3, 3, 3), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemAllocPitch(&block, &pitch, std::size_t{1} << 40, std::size_t{1} << 40, 4), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemAllocPitch(&block, nullptr, 3, 3, 4), CUDA_ERROR_INVALID_VALUE);
}

CASE(range) {
  program::begin();
  CUdeviceptr odd = 0;
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  OK(cuMemAlloc(&odd, 1000));
  OK(cuMemGetAddressRange(&base, &bytes, odd + 999));
  EQUAL(base, odd);
  EQUAL(bytes, 1000u);
  OK(cuMemGetAddressRange(nullptr, &bytes, odd));
  OK(cuMemGetAddressRange(&base, nullptr, odd));
  EQUAL(cuMemGetAddressRange(&base, &bytes, odd + 1000), CUDA_ERROR_NOT_FOUND);
  EQUAL(base, 0u);
  EQUAL(bytes, 0u);
  OK(cuMemFree(odd));
  EQUAL(cuMemGetAddressRange(&base, &bytes, odd), CUDA_ERROR_NOT_FOUND);
}

CASE(attributes) {
  const CUcontext context = program::begin();
  CUdeviceptr block = 0;
  OK(cuMemAlloc(&block, 4096));
  EQUAL(attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, block + 64), block);
  EQUAL(attribute<std::size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, block + 64), 4096u);
  EQUAL(reinterpret_cast<std::uintptr_t>(attribute<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, block)),
        reinterpret_cast<std::uintptr_t>(context));
  EQUAL(attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block), unsigned{CU_MEMORYTYPE_DEVICE});
  const auto first = attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, block);
  HOLDS(attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, block) <= block);
  unsigned type = 0;
  unsigned long long id = 0;
  CUpointer_attribute both[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_BUFFER_ID};
  void* answers[] = {&type, &id};
  OK(cuPointerGetAttributes(2, both, answers, block));
  EQUAL(id, first);
  OK(cuMemFree(block));
  EQUAL(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, block), CUDA_ERROR_INVALID_VALUE);
  OK(cuPointerGetAttributes(2, both, answers, block));
  EQUAL(type, 0u);
  CUdeviceptr again = 0;
  OK(cuMemAlloc(&again, 4096));
  HOLDS(attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, again) != first);
  CUmemGenericAllocationHandle handle = 0;
  EQUAL(cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(again)), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemUnmap(again, 2 << 20), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemAddressFree(again, 2 << 20), CUDA_ERROR_INVALID_VALUE);
}

CASE(getinfo) {
  program::begin();
  const std::size_t before = program::free_memory();
  CUdeviceptr block = 0;
  OK(cuMemAlloc(&block, 64 << 20));
  const std::size_t during = program::free_memory();
  HOLDS(before - during >= 64u << 20);
  HOLDS(before - during <
        (64u << 20) + (600u << 20));  // and at most the headroom's worth of what the driver itself took
  OK(cuMemFree(block));
  EQUAL(program::free_memory(), during + (64 << 20));
}

CASE(threads) {
  const CUcontext context = program::begin();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([context, t] {
      OK(cuCtxSetCurrent(context));
      std::vector<CUdeviceptr> mine;
      for (int i = 0; i < 200; ++i) {
        CUdeviceptr block = 0;
        OK(cuMemAlloc(&block, std::size_t(1000 * (t + 1) + i * 37)));
        mine.push_back(block);
        if (i % 3 == 0) {
          OK(cuMemFree(mine.front()));
          mine.erase(mine.begin());
        }
      }
      for (CUdeviceptr block : mine) OK(cuMemFree(block));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

CASE(no_context_free) {
  program::begin();
  CUdeviceptr block = 0;
  OK(cuMemAlloc(&block, 4096));
  std::thread([block] { OK(cuMemFree(block)); }).join();
}

CASE(out_of_memory) {
  program::begin();
  std::vector<CUdeviceptr> blocks;
  CUresult result = CUDA_SUCCESS;
  while (result == CUDA_SUCCESS && blocks.size() < 10000) {
    CUdeviceptr block = 0;
    result = cuMemAlloc(&block, 64 << 20);
    if (result == CUDA_SUCCESS) blocks.push_back(block);
  }
  EQUAL(result, CUDA_ERROR_OUT_OF_MEMORY);
  for (CUdeviceptr block : blocks) OK(cuMemFree(block));
  CUdeviceptr block = 0;
  OK(cuMemAlloc(&block, 64 << 20));
}

// Run only with pool.overflow=host: natively the card's memory is the end.
CASE(overflow) {
  program::begin();
  constexpr std::size_t kPiece = 96 << 20;
  std::size_t total = 0;
  std::size_t free = 0;
  OK(cuMemGetInfo(&free, &total));
  std::vector<CUdeviceptr> blocks;
  std::size_t on_card = 0;
  CUdeviceptr block = 0;
  while (blocks.size() < 100 && cuMemAlloc(&block, kPiece) == CUDA_SUCCESS) {
    OK(cuMemsetD32(block, unsigned(blocks.size()), kPiece / 4));
    blocks.push_back(block);
    const bool is_host = attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block) == CU_MEMORYTYPE_HOST;
    EQUAL(attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block + kPiece - 4) == CU_MEMORYTYPE_HOST, is_host);
    if (!is_host) on_card += kPiece;
    OK(cuMemGetInfo(&free, &total));
    HOLDS(free + on_card <= total);
  }
  HOLDS(blocks.size() * kPiece > total);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    unsigned word = 0;
    OK(cuMemcpyDtoH(&word, blocks[i] + kPiece - 4, sizeof word));
    EQUAL(word, i);
  }
  for (CUdeviceptr each : blocks) OK(cuMemFree(each));
  OK(cuCtxSynchronize());
  OK(cuMemAlloc(&block, kPiece));
  EQUAL(attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block), unsigned(CU_MEMORYTYPE_DEVICE));
  OK(cuMemFree(block));
}
