#include "cli/bench/heap_count.h"

#include <unistd.h>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::uint64_t> allocations{0};

void* counted(void* memory) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(std::malloc(bytes ? bytes : 1)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const std::size_t unit = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace gpupool::bench {

std::uint64_t heap_allocations() { return allocations.load(std::memory_order_relaxed); }

std::uint64_t resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  unsigned long pages = 0;
  const int read = std::fscanf(file, "%*u %lu", &pages);
  std::fclose(file);
  return read == 1 ? pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
}

}  // namespace gpupool::bench
