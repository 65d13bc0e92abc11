// Storage for nodes of one type: slabs that never move, named by 32-bit index, freed nodes used again. Taking and giving in steady
// state touches no heap. Owned by one structure, under its owner's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace gpupool {

template <class Node>
class NodeSlab {
 public:
  using Index = std::uint32_t;

  Node& operator[](Index i) { return slabs_[i / kPerSlab][i % kPerSlab]; }
  const Node& operator[](Index i) const { return slabs_[i / kPerSlab][i % kPerSlab]; }

  /// An unused node; its content is whatever it held before.
  Index take() {
    if (!free_.empty()) {
      Index i = free_.back();
      free_.pop_back();
      return i;
    }
    if (used_ == slabs_.size() * kPerSlab) {
      slabs_.push_back(std::make_unique<Node[]>(kPerSlab));
      if (free_.capacity() < used_ + kPerSlab) free_.reserve(2 * (used_ + kPerSlab));
    }
    return used_++;
  }
  void give(Index i) { free_.push_back(i); }
  std::size_t in_use() const { return used_ - free_.size(); }

 private:
  static constexpr Index kPerSlab = 256;
  std::vector<std::unique_ptr<Node[]>> slabs_;
  std::vector<Index> free_;
  Index used_ = 0;
};

}  // namespace gpupool
