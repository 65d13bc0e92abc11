// Storage for nodes of one type: slabs that never move, each twice the one before, so that a 32-bit index says by its
// highest bit in which slab its node lies. Slabs are touched only as they are used. Freed nodes are used again; taking
// and giving in steady state touches neither heap nor kernel. Owned by one structure, under its owner's lock.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
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
    for (Node* slab : slabs_) ::operator delete(slab, kAlignment);
  }

  Node& operator[](Index i) { return *at(i); }
  const Node& operator[](Index i) const { return *at(i); }

  /// An unused node; its content is whatever it held before, anything at first. Throws std::bad_alloc.
  Index take() {
    if (!free_.empty()) {
      Index i = free_.back();
      free_.pop_back();
      return i;
    }
    const unsigned slab = slab_of(used_);
    if (slabs_[slab] == nullptr) add(slab);
    return used_++;
  }
  void give(Index i) { free_.push_back(i); }
  std::size_t in_use() const { return used_ - free_.size(); }

 private:
  static constexpr unsigned kFirstBits = 13;  // nodes of the first slab, as a power of two
  static constexpr std::align_val_t kAlignment{64};

  // Node i is number i + 2^kFirstBits of a sequence in which slab s begins at 2^(kFirstBits + s).
  static unsigned highest_bit(std::uint64_t number) { return 63u - static_cast<unsigned>(std::countl_zero(number)); }
  static std::uint64_t number_of(Index i) { return std::uint64_t{i} + (1u << kFirstBits); }
  static unsigned slab_of(Index i) { return highest_bit(number_of(i)) - kFirstBits; }
  Node* at(Index i) const {
    const std::uint64_t number = number_of(i);
    const unsigned bit = highest_bit(number);
    return slabs_[bit - kFirstBits] + (number ^ std::uint64_t{1} << bit);
  }

  void add(unsigned slab) {
    free_.reserve((std::size_t{2} << (kFirstBits + slab)) - (std::size_t{1} << kFirstBits));
    slabs_[slab] = static_cast<Node*>(::operator new(sizeof(Node) << (kFirstBits + slab), kAlignment));
  }

  std::array<Node*, 33 - kFirstBits> slabs_{};
  std::vector<Index> free_;
  Index used_ = 0;
};

}  // namespace gpupool
