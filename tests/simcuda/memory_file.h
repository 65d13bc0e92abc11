// A file in memory that has no name: the system call itself, since the C library's function for it is from 2018 and the
// simulated driver also runs in older roots.
#pragma once
#include <linux/memfd.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpupool::sim {

inline int memory_file(const char* name) { return static_cast<int>(syscall(SYS_memfd_create, name, MFD_CLOEXEC)); }

}  // namespace gpupool::sim
