// Blocks of other processes that this one has opened by a handle of ours (ipc_handle.h): asks the exporter, maps what
// it sends, tells it of the close, and knows meanwhile what lies at those addresses. A handle that is open in a context
// already is the same address once more, counted, as natively. One mutex guards the table; nothing is asked or mapped
// under it. Owned by Process.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "pool/lock_order.h"
#include "preload/guard.h"
#include "preload/inherited.h"
#include "preload/ipc_handle.h"

namespace gpupool {

class Exporter;
class SharedRange;

/// What a program may ask of an opened block.
struct ImportedBlock {
  CUdeviceptr address = 0;
  std::uint64_t requested = 0;
  CUcontext context = nullptr;
};

class Imports {
 public:
  Imports();
  ~Imports();

  /// Is the handle one that open() understands? Others are the driver's.
  static bool knows(const CUipcMemHandle& handle) { return unpack(handle) || SizedHandle::size_of(handle); }
  /// With `context` current, not green.
  CUresult open(const Guard& guard, const CUipcMemHandle& handle, CUcontext context, unsigned flags,
                CUdeviceptr& address);

  /// The other end of open().
  enum class Closed : std::uint8_t {
    kYes,
    kNotOpen,  // a slab below other blocks that are open still
    kNotOurs,  // an address for the driver
  };
  Closed close(const Guard& guard, CUdeviceptr address);
  /// The context has gone, and what was opened in it.
  void context_gone(CUcontext context);

  /// Lock-free: whether there is anything to look for.
  bool any() const { return count_.load(std::memory_order_acquire) != 0; }
  /// The opened block that holds `address`.
  bool find(CUdeviceptr address, ImportedBlock& block) const;

  /// In a forked child, on the parent's object: what the parent has open is not the child's. Async-signal-safe.
  void abandon() { sockets_.close_all(); }

 private:
  struct Entry {
    CUipcMemHandle handle{};
    ImportedBlock block;
    std::shared_ptr<Exporter> exporter;  // null: its own driver gave the handle out
    std::unique_ptr<SharedRange> range;  // null: a part of a slab that the driver has opened
    CUdeviceptr slab = 0;
    unsigned users = 0;
  };

  Entry* known(const CUipcMemHandle& handle, CUcontext context);
  std::shared_ptr<Exporter> exporter_of(const SharedHandle& shared);
  CUresult map(unsigned flags, Entry& entry);
  static CUresult map_shared(const SharedHandle& shared, unsigned flags, Entry& entry);
  enum class Work : std::uint8_t { kDone, kMayRun };
  static void unmap(Entry& entry, Work work);
  void count() { count_.store(entries_.size(), std::memory_order_release); }

  mutable RankedMutex<LockRank::kImports> mutex_;
  Inherited sockets_;
  std::vector<Entry> entries_;
  std::atomic<std::size_t> count_{0};
};

}  // namespace gpupool
