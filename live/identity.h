// Who a process is, beyond its number: what the writer of a live page says of itself, and by what a reader judges
// whether that process still runs. Reads /proc; nothing is cached; nothing throws but for lack of host memory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "live/page.h"

namespace gpupool {

/// When a process of our own pid namespace began, in clock ticks since the boot; 0 when there is none.
std::uint64_t start_ticks_of(pid_t pid);
/// The inodes of our namespaces, 0 where /proc does not say.
std::uint64_t own_pid_namespace();
std::uint64_t own_ipc_namespace();
/// Different after each boot of the machine; empty where /proc does not say.
std::string boot_id();

/// "gpupool-UID-NAMESPACE-PID-START": no two processes of a machine share one.
std::string page_name(const PageIdentity& who, uid_t user);
/// What the names of a user's pages begin with.
std::string page_name_start(uid_t user);

}  // namespace gpupool
