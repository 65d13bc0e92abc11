// An ordered map as a B+ tree: the one search structure of the pool (blocks and holes by address, holes by size, handles by place).
// Built for small integer keys and small plain values: wide nodes, keys apart from values, nodes in slabs named by 32-bit index, so
// that a search touches few cache lines and a million entries stay small. Leaves form a list in key order. Many small trees may share
// one store. Erasing never rebalances: a node goes when it is empty, so memory is bounded by the most entries ever held.
// Not thread safe; the owner's lock protects it. Source of the structure: Comer, "The Ubiquitous B-Tree" (1979).
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "pool/node_slab.h"

namespace gpupool {

/// Value type of a map that is only a set.
struct Nothing {};

namespace detail {
template <class Value, unsigned kWidth>
struct ValueArray {
  Value at[kWidth];
  Value& operator[](unsigned i) { return at[i]; }
};
template <unsigned kWidth>
struct ValueArray<Nothing, kWidth> {
  Nothing operator[](unsigned) { return {}; }
};
}  // namespace detail

/// Key: an unsigned integer of which only the lower half is used, so that keys compare alike as signed numbers: that is what every
/// x86-64 can do for many at once. The greatest signed value is never used (it pads the nodes).
template <class Key, class Value = Nothing>
class OrderedMap {
  using Signed = std::make_signed_t<Key>;
  static constexpr unsigned kWidth = 32;
  static constexpr Key kPadding = static_cast<Key>(std::numeric_limits<Signed>::max());
  using Index = std::uint32_t;
  static constexpr Index kNone = ~Index{0};
  static constexpr unsigned kMaxHeight = 12;

 public:
  /// One tree. Plain, so that thousands of mostly tiny ones cost little.
  struct Tree {
    Index root = kNone;
    std::uint32_t size = 0;
    std::uint8_t height = 0;  // levels above the leaves
    bool empty() const { return size == 0; }
  };

  /// A place in a tree; invalid after any insert or erase in that tree, except where said.
  struct Cursor {
    Index leaf = kNone;
    std::uint32_t slot = 0;
    bool valid() const { return leaf != kNone; }
  };

  Key key(Cursor c) const { return leaves_[c.leaf].keys[c.slot]; }
  decltype(auto) value(Cursor c) { return leaves_[c.leaf].values[c.slot]; }
  decltype(auto) value(Cursor c) const { return const_cast<OrderedMap*>(this)->value(c); }

  /// The entry with the greatest key <= `key`; invalid when there is none. Cost: O(log n).
  Cursor floor(const Tree& tree, Key key) const {
    if (tree.empty()) return {};
    Index leaf = descend(tree, key);
    unsigned n = count_not_above(leaves_[leaf].keys, key);
    if (n > 0) return {leaf, n - 1};
    Index before = leaves_[leaf].previous;
    return before == kNone ? Cursor{} : Cursor{before, leaves_[before].count - 1u};
  }

  /// The entry with the least key >= `key`; invalid when there is none.
  Cursor at_least(const Tree& tree, Key key) const {
    if (tree.empty()) return {};
    Index leaf = descend(tree, key);
    unsigned n = key == 0 ? 0 : count_not_above(leaves_[leaf].keys, key - 1);
    if (n < leaves_[leaf].count) return {leaf, n};
    Index after = leaves_[leaf].next;
    return after == kNone ? Cursor{} : Cursor{after, 0};
  }

  Cursor first(const Tree& tree) const { return at_least(tree, 0); }
  Cursor last(const Tree& tree) const { return floor(tree, kPadding - 1); }

  Cursor next(Cursor c) const {
    if (c.slot + 1 < leaves_[c.leaf].count) return {c.leaf, c.slot + 1};
    Index after = leaves_[c.leaf].next;
    return after == kNone ? Cursor{} : Cursor{after, 0};
  }
  Cursor previous(Cursor c) const {
    if (c.slot > 0) return {c.leaf, c.slot - 1};
    Index before = leaves_[c.leaf].previous;
    return before == kNone ? Cursor{} : Cursor{before, leaves_[before].count - 1u};
  }

  /// Inserts a key that is not there yet; returns its place.
  Cursor insert(Tree& tree, Key key, const Value& value) {
    if (tree.root == kNone) {
      tree.root = new_leaf();
      tree.height = 0;
    }
    Path path;
    Index leaf = descend(tree, key, path);
    for (unsigned level = 0; level < tree.height; ++level) {
      Inner& inner = inners_[path.node[level]];
      if (key < inner.keys[0]) inner.keys[0] = key;  // its first child now begins lower
    }
    unsigned slot = count_not_above(leaves_[leaf].keys, key);
    if (leaves_[leaf].count == kWidth) {
      Index right = split_leaf(leaf);
      add_child(tree, path, tree.height, leaves_[right].keys[0], right);
      if (slot > kWidth / 2) {
        slot -= kWidth / 2;
        leaf = right;
      }
    }
    put(leaf, slot, key, value);
    ++tree.size;
    return {leaf, slot};
  }

  /// The same where the place is known: right behind `c`. Cheaper as long as the node has room and does not end there
  /// (the nodes above may send a key behind a node's end to the next node).
  Cursor insert_behind(Tree& tree, Cursor c, Key key, const Value& value) {
    std::uint32_t count = leaves_[c.leaf].count;
    if (count == kWidth || c.slot + 1 == count) return insert(tree, key, value);
    put(c.leaf, c.slot + 1, key, value);
    ++tree.size;
    return {c.leaf, c.slot + 1};
  }

  /// Removes the entry. Cursors to smaller keys stay valid.
  void erase(Tree& tree, Cursor c) {
    Leaf& leaf = leaves_[c.leaf];
    if (leaf.count == 1 && tree.height > 0) {
      Path path;
      descend(tree, leaf.keys[0], path);
      drop_leaf(c.leaf);
      remove_child(tree, path, tree.height);
    } else {
      for (unsigned i = c.slot; i + 1 < leaf.count; ++i) {
        leaf.keys[i] = leaf.keys[i + 1];
        if constexpr (kHasValues) leaf.values[i] = leaf.values[i + 1];
      }
      leaf.keys[--leaf.count] = kPadding;
    }
    --tree.size;
  }

  /// Names the first broken invariant, or nullptr. Cost: O(n).
  const char* validate(const Tree& tree) const {
    std::uint32_t seen = 0;
    Key last_key = 0;
    for (Cursor c = first(tree); c.valid(); c = next(c)) {
      if (seen > 0 && key(c) <= last_key) return "ordered_map: keys out of order";
      last_key = key(c);
      ++seen;
      Cursor again = floor(tree, last_key);
      if (again.leaf != c.leaf || again.slot != c.slot) return "ordered_map: a key is not found where it lies";
    }
    return seen == tree.size ? nullptr : "ordered_map: size does not match the entries";
  }

 private:
  static constexpr bool kHasValues = !std::is_same_v<Value, Nothing>;

  struct Leaf {
    Key keys[kWidth];
    [[no_unique_address]] detail::ValueArray<Value, kWidth> values;
    Index next;
    Index previous;
    std::uint32_t count;
  };
  // children[i] holds the keys from keys[i] up to below keys[i + 1]; the first child also all smaller ones.
  struct Inner {
    Key keys[kWidth];
    Index children[kWidth];
    std::uint32_t count;
  };
  struct Path {
    Index node[kMaxHeight];
    std::uint32_t slot[kMaxHeight];
  };

  static unsigned count_not_above(const Key (&keys)[kWidth], Key key) {
    Signed above = 0;
    for (unsigned i = 0; i < kWidth; ++i) above += static_cast<Signed>(keys[i]) > static_cast<Signed>(key);
    return kWidth - static_cast<unsigned>(above);
  }
  static unsigned child_of(const Inner& inner, Key key) {
    unsigned n = count_not_above(inner.keys, key);
    return n == 0 ? 0 : n - 1;
  }

  Index descend(const Tree& tree, Key key) const {
    Index node = tree.root;
    for (unsigned level = 0; level < tree.height; ++level) {
      const Inner& inner = inners_[node];
      node = inner.children[child_of(inner, key)];
    }
    return node;
  }
  Index descend(const Tree& tree, Key key, Path& path) const {
    Index node = tree.root;
    for (unsigned level = 0; level < tree.height; ++level) {
      const Inner& inner = inners_[node];
      path.node[level] = node;
      path.slot[level] = child_of(inner, key);
      node = inner.children[path.slot[level]];
    }
    return node;
  }

  Index new_leaf() {
    Index i = leaves_.take();
    Leaf& leaf = leaves_[i];
    for (Key& k : leaf.keys) k = kPadding;
    leaf.next = leaf.previous = kNone;
    leaf.count = 0;
    return i;
  }

  void put(Index index, unsigned slot, Key key, const Value& value) {
    Leaf& leaf = leaves_[index];
    for (unsigned i = leaf.count; i > slot; --i) {
      leaf.keys[i] = leaf.keys[i - 1];
      if constexpr (kHasValues) leaf.values[i] = leaf.values[i - 1];
    }
    leaf.keys[slot] = key;
    if constexpr (kHasValues) leaf.values[slot] = value;
    ++leaf.count;
  }

  Index split_leaf(Index left_index) {
    Index right_index = new_leaf();
    Leaf& left = leaves_[left_index];
    Leaf& right = leaves_[right_index];
    for (unsigned i = kWidth / 2; i < kWidth; ++i) {
      right.keys[i - kWidth / 2] = left.keys[i];
      if constexpr (kHasValues) right.values[i - kWidth / 2] = left.values[i];
      left.keys[i] = kPadding;
    }
    left.count = right.count = kWidth / 2;
    right.next = left.next;
    right.previous = left_index;
    if (right.next != kNone) leaves_[right.next].previous = right_index;
    left.next = right_index;
    return right_index;
  }

  void drop_leaf(Index index) {
    const Leaf& leaf = leaves_[index];
    if (leaf.previous != kNone) leaves_[leaf.previous].next = leaf.next;
    if (leaf.next != kNone) leaves_[leaf.next].previous = leaf.previous;
    leaves_.give(index);
  }

  Index new_inner() {
    Index i = inners_.take();
    for (Key& k : inners_[i].keys) k = kPadding;
    inners_[i].count = 0;
    return i;
  }

  static void put_child(Inner& inner, unsigned slot, Key key, Index child) {
    for (unsigned i = inner.count; i > slot; --i) {
      inner.keys[i] = inner.keys[i - 1];
      inner.children[i] = inner.children[i - 1];
    }
    inner.keys[slot] = key;
    inner.children[slot] = child;
    ++inner.count;
  }

  // Hangs `child` behind the child at path[level - 1], splitting upwards as needed.
  void add_child(Tree& tree, const Path& path, unsigned level, Key key, Index child) {
    while (true) {
      if (level == 0) {
        Index root = new_inner();
        put_child(inners_[root], 0, 0, tree.root);
        put_child(inners_[root], 1, key, child);
        tree.root = root;
        ++tree.height;
        return;
      }
      --level;
      Inner& inner = inners_[path.node[level]];
      unsigned slot = path.slot[level] + 1;
      if (inner.count < kWidth) {
        put_child(inner, slot, key, child);
        return;
      }
      Index right_index = new_inner();
      Inner& right = inners_[right_index];
      for (unsigned i = kWidth / 2; i < kWidth; ++i) {
        right.keys[i - kWidth / 2] = inner.keys[i];
        right.children[i - kWidth / 2] = inner.children[i];
        inner.keys[i] = kPadding;
      }
      inner.count = right.count = kWidth / 2;
      if (slot > kWidth / 2) {
        put_child(right, slot - kWidth / 2, key, child);
      } else {
        put_child(inner, slot, key, child);
      }
      key = right.keys[0];
      child = right_index;
    }
  }

  void remove_child(Tree& tree, const Path& path, unsigned level) {
    while (level > 0) {
      --level;
      Inner& inner = inners_[path.node[level]];
      for (unsigned i = path.slot[level]; i + 1 < inner.count; ++i) {
        inner.keys[i] = inner.keys[i + 1];
        inner.children[i] = inner.children[i + 1];
      }
      inner.keys[--inner.count] = kPadding;
      if (inner.count > 0) break;
      inners_.give(path.node[level]);
    }
    while (tree.height > 0 && inners_[tree.root].count == 1) {
      Index child = inners_[tree.root].children[0];
      inners_.give(tree.root);
      tree.root = child;
      --tree.height;
    }
  }

  NodeSlab<Leaf> leaves_;
  NodeSlab<Inner> inners_;
};

}  // namespace gpupool
