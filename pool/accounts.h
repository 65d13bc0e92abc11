// Accounts: by tag, the bytes that the live blocks of a memory pool of the program were asked for with. A tape counts
// its own blocks under its lock, so that the nearly only writer of an account needs no atomic read-modify-write; who
// counts without that lock, or beside such a tape, adds to a part of its own. Made by the tape's owner, read by anyone.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace gpupool {

class Account {
 public:
  /// kOne: under one tape's lock, and no other tape counts here as kOne before that one has ended.
  enum class Writers : std::uint8_t { kOne, kMany };

  void add(std::uint64_t bytes, Writers writers) {
    if (writers == Writers::kOne) [[likely]]
      by_one_.store(by_one_.load(std::memory_order_relaxed) + bytes, std::memory_order_release);
    else
      by_many_.fetch_add(bytes, std::memory_order_release);
  }
  /// What was added, in the same way; what a tape has added that has ended since, as one of the many.
  void subtract(std::uint64_t bytes, Writers writers) { add(0 - bytes, writers); }
  /// As one of the many. The sum with it: where no tape counts, no two callers see the same.
  std::uint64_t add_to_sum(std::uint64_t bytes) {
    return by_many_.fetch_add(bytes, std::memory_order_release) + bytes + by_one_.load(std::memory_order_relaxed);
  }

  /// The sum as it was at one moment: the part of the many is seen alike before and after.
  std::uint64_t bytes() const {
    for (std::uint64_t many = by_many_.load(std::memory_order_acquire);;) {
      const std::uint64_t sum = by_one_.load(std::memory_order_acquire) + many;
      const std::uint64_t again = by_many_.load(std::memory_order_relaxed);
      if (again == many) return sum;
      many = again;
    }
  }

 private:
  std::atomic<std::uint64_t> by_one_{0};
  std::atomic<std::uint64_t> by_many_{0};
};

class Accounts {
 public:
  static constexpr unsigned kMost = 4096;  // tags; 0 has no account

  /// Null: nobody wants it counted.
  Account* of(std::uint16_t tag) const { return accounts_[tag].load(std::memory_order_acquire); }
  /// For ever.
  void open(std::uint16_t tag, Account& account) { accounts_[tag].store(&account, std::memory_order_release); }

 private:
  std::array<std::atomic<Account*>, kMost> accounts_{};
};

}  // namespace gpupool
