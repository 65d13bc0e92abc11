// Host memory of this program: its calls to operator new, which is how the pool reaches the heap (all of C++'s
// containers do), and what of it is resident.
#pragma once

#include <cstdint>

namespace gpupool::bench {

std::uint64_t heap_allocations();

/// Bytes of this process that lie in memory now; 0 where /proc does not tell.
std::uint64_t resident_bytes();

}  // namespace gpupool::bench
