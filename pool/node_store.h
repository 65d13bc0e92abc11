// Storage for nodes of one type that never move and are named by pointer: chunks from the heap, each twice the one
// before. Freed nodes form a list through themselves and are used again; taking and giving in steady state touches
// neither heap nor kernel. Owned by one structure, under its owner's lock.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

namespace gpupool {

template <class Node>
class NodeStore {
  static_assert(std::is_trivially_destructible_v<Node>);

 public:
  /// An unused node of any content. Throws std::bad_alloc.
  Node* take() {
    if (free_ == nullptr) add();
    Place* place = free_;
    free_ = place->next;
    return &place->node;
  }
  void give(Node* node) {
    Place* place = reinterpret_cast<Place*>(node);
    place->next = free_;
    free_ = place;
  }

 private:
  union Place {
    Place* next;
    Node node;
    Place() : next(nullptr) {}
  };
  static constexpr std::size_t kFirst = 64;  // nodes of the first chunk

  void add() {
    const std::size_t nodes = kFirst << chunks_.size();
    chunks_.push_back(std::make_unique<Place[]>(nodes));
    for (std::size_t i = nodes; i-- > 0;) {
      chunks_.back()[i].next = free_;
      free_ = &chunks_.back()[i];
    }
  }

  std::vector<std::unique_ptr<Place[]>> chunks_;
  Place* free_ = nullptr;
};

}  // namespace gpupool
