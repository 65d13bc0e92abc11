// Blocks of this process that others may map: gives out handles for them, answers those who open one, and knows who has
// one open. The answers come from a thread of its own, made at the first export and waiting on sockets; a process that
// exports nothing has neither. One mutex guards the table; a tape's lock may be taken under it. Owned by Process.
#pragma once

#include <atomic>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "pool/lock_order.h"
#include "preload/guard.h"
#include "preload/home.h"
#include "preload/inherited.h"
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
  /// driver's own. False: there is no thread or socket to be had, or no such block.
  bool add(const Guard& guard, Home& home, const BlockInfo& block, const std::optional<Slab>& slab,
           CUipcMemHandle& handle);

  /// Did this process give the handle out?
  bool gave(const SharedHandle& handle) const;

  /// Before a block is freed: from now on nobody can open it, and if nobody has, nothing is kept of it. Costs one load
  /// where nothing was exported.
  void freeing(const Guard& guard, std::uint64_t address) {
    if (any_.load(std::memory_order_relaxed)) [[unlikely]]
      free_one(guard, address);
  }

  /// The process ends: no more answers.
  void stop();
  /// In a forked child, on the parent's object: leaves the sockets to the parent. Async-signal-safe.
  void abandon() { sockets_.close_all(); }

 private:
  /// A block that was exported: live, or freed and open elsewhere.
  struct Export {
    Home* home = nullptr;
    std::uint64_t block = 0;  // its buffer id: by then another may lie at the address
    std::optional<Slab> slab;
    unsigned users = 0;
    bool freed = false;
  };
  using Table = std::unordered_map<std::uint64_t, Export>;  // by address

  /// Another process that has opened something.
  struct Importer {
    int connection = -1;
    std::vector<ShareQuestion> open;
  };

  bool start();
  void serve(int listening);
  void wait_for_one(int listening, std::vector<Importer>& importers);
  void accept_one(int listening, std::vector<Importer>& importers);
  bool listen_to(Importer& importer);
  void answer(const ShareQuestion& question, Importer& importer);
  bool describe(const ShareQuestion& question, ShareAnswer& answer, std::vector<int>& descriptors);
  void close(const ShareQuestion& question, Importer& importer);
  void lost(const Importer& importer);
  void free_one(const Guard& guard, std::uint64_t address);
  Table::iterator find(const ShareQuestion& question);
  void end(Table::iterator entry);

  mutable RankedMutex<LockRank::kExports> mutex_;
  Table exports_;
  ExporterKey key_{};
  std::atomic<bool> any_{false};
  std::atomic<int> socket_{-1};
  Inherited sockets_;
  std::thread thread_;
};

}  // namespace gpupool
