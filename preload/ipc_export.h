// Blocks of this process that others may map: gives out handles for them, and answers those who open one. The answers
// come from a thread of its own, made at the first export and waiting on a socket; a process that exports nothing has
// neither. One mutex guards the table, and is held during no driver call. Owned by Process.
#pragma once

#include <atomic>
#include <optional>
#include <thread>
#include <unordered_map>

#include "pool/lock_order.h"
#include "preload/guard.h"
#include "preload/home.h"
#include "preload/ipc_handle.h"

namespace gpupool {

/// A block's place in memory that the driver itself can export.
struct Slab {
  CUipcMemHandle handle{};
  std::uint64_t offset = 0;
};

class Exports {
 public:
  /// A handle for a live block of `home`, the same each time. `slab`: where the home's memory has handles of the
  /// driver's own. False: there is no thread or socket to be had.
  bool add(const Guard& guard, Home& home, const BlockInfo& block, const std::optional<Slab>& slab,
           CUipcMemHandle& handle);

  /// Did this process give the handle out?
  bool gave(const SharedHandle& handle) const;

  /// The process ends: no more answers.
  void stop();
  /// In a forked child, on the parent's object: leaves the socket to the parent. Async-signal-safe.
  void abandon();

 private:
  struct Export {
    Home* home = nullptr;
    std::uint64_t address = 0;
    std::optional<Slab> slab;
  };

  bool start();
  void serve();
  void talk(int connection) const;
  void answer(const ShareQuestion& question, int connection) const;

  mutable RankedMutex<LockRank::kExports> mutex_;
  std::unordered_map<std::uint64_t, Export> exports_;  // by the block's buffer id
  ExporterKey key_{};
  std::atomic<int> socket_{-1};
  std::atomic<int> connection_{-1};
  std::thread thread_;
};

}  // namespace gpupool
