// Four ways by which programs reach the driver do the same: 4 blocks of 1000 to 4000 bytes, freed again.
#pragma once

#include <cstddef>
#include <cstdio>

constexpr int kBlocks = 4;
constexpr std::size_t bytes_of(int block) { return 1000u * static_cast<std::size_t>(block + 1); }

/// `allocate(block, out)` and `give(in)` return 0 for success.
template <class Pointer, class Allocate, class Give>
int use_memory(Allocate allocate, Give give) {
  Pointer blocks[kBlocks] = {};
  for (int i = 0; i < kBlocks; ++i) {
    if (const int error = allocate(i, &blocks[i])) return std::printf("allocation: %d\n", error), 1;
  }
  for (int i = 0; i < kBlocks; ++i) {
    if (const int error = give(i, blocks[i])) return std::printf("free: %d\n", error), 1;
  }
  return 0;
}
