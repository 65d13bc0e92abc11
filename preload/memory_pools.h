// The program's memory pools (CUmemoryPool) as accounting tags on the tapes: each has its own used and reserved bytes,
// high marks, release threshold and limit, as the driver's pools have, while the bytes come from the one tape. The
// driver's real pool stays the identity of each: its handle is the key, it validates every call, and it holds no memory
// of ours. No CUDA types here, so that it can be tested alone. Counting and finding are lock-free; adopting takes a
// mutex.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <unordered_map>

#include "pool/accounts.h"
#include "pool/lock_order.h"

namespace gpupool {

/// The driver takes memory for a pool in steps of this size; what programs see as "reserved" is a multiple of it.
constexpr std::uint64_t kPoolStep = std::uint64_t{32} << 20;

using PoolHandle = std::uint64_t;

/// Whose a pool is: the device's default one, or made by the program.
enum class PoolOrigin : std::uint8_t { kDevice, kProgram };

class MemoryPool {
 public:
  /// `limit` is CUmemPoolProps::maxSize, 0 for none.
  MemoryPool(PoolHandle handle, int device, PoolOrigin origin, std::uint64_t limit, std::uint16_t tag)
      : handle_(handle), device_(device), origin_(origin), limit_(limit), tag_(tag) {}

  PoolHandle handle() const { return handle_; }
  int device() const { return device_; }
  std::uint16_t tag() const { return tag_; }

  /// A pool with a limit of its own counts each request before it is served, so that no two of them share what is
  /// left. Without one, tapes count their blocks in the account, and passed() counts what the driver serves.
  bool limited() const { return limit_ != 0; }
  Account& account() { return account_; }

  /// Counts a request in, unless the pool's own limit refuses it. Then it is either served or given back.
  bool take(std::uint64_t bytes) {
    const std::uint64_t used = account_.add_to_sum(bytes);
    if (limit_ == 0 || in_steps(used) <= in_steps(limit_)) return true;
    give_back(bytes);
    return false;
  }
  void passed(std::uint64_t bytes) {
    if (!limited()) account_.add(bytes, Account::Writers::kMany);
  }
  /// In place of passed(): the free of what the driver serves will not be seen.
  void lost_sight(std::uint64_t bytes) {
    if (limited()) give_back(bytes);
  }
  /// A request that is counted was served: the high marks go by that.
  void served() {
    const std::uint64_t used = this->used();
    if (used <= used_high_.load(std::memory_order_relaxed) && used <= reserved_.load(std::memory_order_relaxed))
        [[likely]]
      return;
    raise_marks(used);
  }
  /// What no tape counts.
  void give_back(std::uint64_t bytes) { account_.subtract(bytes, Account::Writers::kMany); }

  std::uint64_t used() const { return account_.bytes(); }
  std::uint64_t used_high() const { return used_high_.load(std::memory_order_relaxed); }
  /// As the driver would hold after a synchronisation: steps for what is used, or more up to the release threshold.
  std::uint64_t reserved();
  std::uint64_t reserved_high() const { return reserved_high_.load(std::memory_order_relaxed); }
  void reset_used_high() { used_high_.store(used(), std::memory_order_relaxed); }
  void reset_reserved_high() { reserved_high_.store(reserved(), std::memory_order_relaxed); }
  void trim(std::uint64_t keep);
  void set_release_threshold(std::uint64_t bytes) { threshold_.store(bytes, std::memory_order_relaxed); }

  /// CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: whether a wait may be put into the program's stream.
  bool may_wait() const { return may_wait_.load(std::memory_order_relaxed); }
  void set_may_wait(bool allowed) { may_wait_.store(allowed, std::memory_order_relaxed); }

  /// Whether other devices were given access.
  bool opened() const { return opened_.load(std::memory_order_relaxed); }
  void open() { opened_.store(true, std::memory_order_relaxed); }

  void destroy() { destroyed_.store(true, std::memory_order_release); }
  void restore() { destroyed_.store(false, std::memory_order_release); }
  bool destroyed() const { return destroyed_.load(std::memory_order_acquire); }

 private:
  static constexpr std::uint64_t in_steps(std::uint64_t bytes) {
    return (bytes + kPoolStep - 1) / kPoolStep * kPoolStep;
  }
  void raise_marks(std::uint64_t used);
  void shrink_to(std::uint64_t floor);

  const PoolHandle handle_;
  const int device_;
  const PoolOrigin origin_;
  const std::uint64_t limit_;
  const std::uint16_t tag_;
  Account account_;
  std::atomic<std::uint64_t> used_high_{0};
  std::atomic<std::uint64_t> reserved_{0};
  std::atomic<std::uint64_t> reserved_high_{0};
  std::atomic<std::uint64_t> threshold_{0};
  std::atomic<bool> may_wait_{true};
  std::atomic<bool> opened_{false};
  std::atomic<bool> destroyed_{false};
};

class MemoryPools {
 public:
  static constexpr std::uint16_t kPlain = 0;  // the tag of requests that came without a pool
  static constexpr unsigned kMostPools = Accounts::kMost;
  static constexpr int kMostDevices = 64;

  /// A pool whose requests the tapes shall serve. Null when there are too many: it then passes through. Never freed,
  /// because blocks that outlive a destroyed pool still count back to it.
  MemoryPool* adopt(PoolHandle handle, int device, PoolOrigin origin, std::uint64_t limit);
  /// Null for a pool that is not ours (exportable, imported, managed, host) or destroyed.
  MemoryPool* find(PoolHandle handle);
  /// Null for kPlain.
  MemoryPool* of_tag(std::uint16_t tag) { return pools_[tag].load(std::memory_order_acquire); }
  /// Of the pools without a limit: for the tapes to count in.
  const Accounts& accounts() const { return accounts_; }
  void destroy(MemoryPool& pool);
  /// A block whose tape went with a context. To the program it is its pool's still, and counted there, until it is
  /// freed: stream-ordered memory is the device's. False: none such.
  void leave_behind(std::uint64_t address, std::uint16_t tag, std::uint64_t bytes);
  bool free_left_behind(std::uint64_t address);

  /// The pool that requests without one use on a device. Unknown until set, and again after forget_current().
  enum class Current : std::uint8_t { kUnknown, kOurs, kForeign };
  Current current(int device, MemoryPool*& pool) const {
    pool = device < 0 || device >= kMostDevices ? foreign() : current_[device].load(std::memory_order_acquire);
    if (pool == nullptr) return Current::kUnknown;
    if (pool != foreign()) return Current::kOurs;
    pool = nullptr;
    return Current::kForeign;
  }
  void set_current(int device, MemoryPool* pool);
  void forget_current();

 private:
  static MemoryPool* foreign() { return reinterpret_cast<MemoryPool*>(std::uintptr_t{1}); }

  struct LeftBehind {
    std::uint16_t tag;
    std::uint64_t bytes;
  };

  RankedMutex<LockRank::kMemoryPools> mutex_;
  std::unordered_map<std::uint64_t, LeftBehind> left_behind_;  // by address
  std::atomic<unsigned> count_{1};                             // tag 0 is kPlain
  std::array<std::atomic<MemoryPool*>, kMostPools> pools_{};
  Accounts accounts_;
  std::array<std::atomic<MemoryPool*>, kMostDevices> current_{};
};

}  // namespace gpupool
