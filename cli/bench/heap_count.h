// Counts this program's calls to operator new, which is how the pool reaches the heap: all of C++'s containers do.
#pragma once

#include <cstdint>

namespace gpupool::bench {

std::uint64_t heap_allocations();

}  // namespace gpupool::bench
