// Storage for nodes of one type: one stretch of host addresses, reserved at the first use and committed step by step,
// so that a node never moves and is found from its 32-bit index by one addition. Freed nodes are used again; taking and
// giving in steady state touches neither heap nor kernel. Large slabs ask for huge pages: at a million blocks,
// translation would cost as much as the data itself. Owned by one structure, under its owner's lock.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

namespace gpupool {

template <class Node>
class NodeSlab {
  static_assert(std::is_trivially_destructible_v<Node>);

 public:
  using Index = std::uint32_t;

  NodeSlab() = default;
  NodeSlab(const NodeSlab&) = delete;
  NodeSlab& operator=(const NodeSlab&) = delete;
  ~NodeSlab() {
    if (reserved_ != 0) munmap(stretch_, reserved_);
  }

  Node& operator[](Index i) { return nodes_[i]; }
  const Node& operator[](Index i) const { return nodes_[i]; }

  /// An unused node; its content is whatever it held before, zeros at first. Throws std::bad_alloc.
  Index take() {
    if (!free_.empty()) {
      Index i = free_.back();
      free_.pop_back();
      return i;
    }
    if ((used_ + std::size_t{1}) * sizeof(Node) > committed_) commit();
    return used_++;
  }
  void give(Index i) { free_.push_back(i); }
  std::size_t in_use() const { return used_ - free_.size(); }

 private:
  static constexpr std::size_t kReserved = std::size_t{4} << 30;
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;

  void commit() {
    if (reserved_ == 0) reserve();
    std::size_t more = committed_ == 0 ? kHugePage : committed_;
    if (more > room_ - committed_) more = room_ - committed_;
    std::byte* base = reinterpret_cast<std::byte*>(nodes_);
    if (more < sizeof(Node) || mprotect(base + committed_, more, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    committed_ += more;
    if (committed_ > kHugePage) madvise(base, committed_, MADV_HUGEPAGE);
    free_.reserve(committed_ / sizeof(Node));
  }

  // Where addresses are rationed (ulimit -v), takes what it gets.
  void reserve() {
    for (std::size_t bytes = kReserved; bytes > kHugePage; bytes /= 2) {
      void* stretch = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (stretch == MAP_FAILED) continue;
      stretch_ = stretch;
      reserved_ = bytes;
      room_ = bytes;
      void* aligned = stretch;
      std::align(kHugePage, kHugePage, aligned, room_);
      nodes_ = static_cast<Node*>(aligned);
      return;
    }
    throw std::bad_alloc();
  }

  Node* nodes_ = nullptr;
  std::vector<Index> free_;
  Index used_ = 0;
  std::size_t committed_ = 0;  // bytes from nodes_ on
  std::size_t room_ = 0;       // the same, at most
  void* stretch_ = nullptr;
  std::size_t reserved_ = 0;  // bytes from stretch_ on
};

}  // namespace gpupool
