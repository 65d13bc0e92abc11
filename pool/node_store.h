// Storage for nodes of one type that never move and are named by pointer: chunks from the heap, each twice the one
// before and touched only as it is used. Freed nodes form a list through themselves and are used again; taking and
// giving in steady state touches neither heap nor kernel. Owned by one structure, under its owner's lock.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <vector>

namespace gpupool {

template <class Node>
class NodeStore {
  static_assert(std::is_trivially_destructible_v<Node> && sizeof(Node) >= sizeof(void*));

 public:
  NodeStore() = default;
  NodeStore(const NodeStore&) = delete;
  NodeStore& operator=(const NodeStore&) = delete;
  ~NodeStore() {
    for (Node* chunk : chunks_) ::operator delete(chunk, kAlignment);
  }

  /// An unused node of any content. Throws std::bad_alloc.
  Node* take() {
    if (free_ != nullptr) {
      Free* node = free_;
      free_ = node->next;
      return reinterpret_cast<Node*>(node);
    }
    if (untouched_ == end_) add();
    return untouched_++;
  }
  void give(Node* node) { free_ = new (node) Free{free_}; }
  /// The next few will be taken without asking the heap: for changes that must not be left in the middle. Throws
  /// std::bad_alloc.
  void reserve(std::size_t few) {
    for (const Free* node = free_; node != nullptr && few != 0; node = node->next) --few;
    if (few <= static_cast<std::size_t>(end_ - untouched_)) return;
    Node* rest = untouched_;
    Node* const rest_end = end_;
    add();
    while (rest != rest_end) give(rest++);
  }

 private:
  struct Free {
    Free* next;
  };
  static constexpr std::size_t kFirst = 4096;  // nodes of the first chunk
  static constexpr std::align_val_t kAlignment{64};

  void add() {
    const std::size_t nodes = kFirst << chunks_.size();
    chunks_.reserve(chunks_.size() + 1);
    untouched_ = static_cast<Node*>(::operator new(nodes * sizeof(Node), kAlignment));
    end_ = untouched_ + nodes;
    chunks_.push_back(untouched_);
  }

  std::vector<Node*> chunks_;
  Node* untouched_ = nullptr;
  Node* end_ = nullptr;
  Free* free_ = nullptr;
};

}  // namespace gpupool
