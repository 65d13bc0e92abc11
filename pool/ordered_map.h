// An ordered map as a B+ tree: the one search structure of the pool (blocks and holes by address, holes by size,
// handles by place). Built for small integer keys and small plain values: wide nodes, keys apart from values, nodes in
// slabs named by 32-bit index, so that a search touches few cache lines and a million entries stay small. A node's
// unused keys are the greatest key, so that a search compares all keys at once and no count is kept. Leaves form a list
// in key order. Many small trees may share one store. Erasing never rebalances: a node goes when it is empty, so memory
// is bounded by the most entries ever held. Not thread safe; the owner's lock protects it. Source of the structure:
// Comer, "The Ubiquitous B-Tree" (1979).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

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

/// How many of the ascending keys are <= `key`, a number below half of their range. For 32-bit keys without a branch:
/// as compilers do the plain loop, a node's search takes twice as long.
template <class Key, unsigned kWidth>
unsigned count_not_above(const Key (&keys)[kWidth], Key key) {
#if defined(__SSE2__)
  if constexpr (sizeof(Key) == 4 && (kWidth == 16 || kWidth == 32)) {
    const __m128i wanted = _mm_set1_epi32(static_cast<int>(key));
    const auto four = [&](unsigned i) {
      return _mm_cmpgt_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(keys + i)), wanted);
    };
    const auto sixteen = [&](unsigned i) {
      const __m128i above =
          _mm_packs_epi16(_mm_packs_epi32(four(i), four(i + 4)), _mm_packs_epi32(four(i + 8), four(i + 12)));
      return std::uint64_t{static_cast<unsigned>(_mm_movemask_epi8(above))};
    };
    std::uint64_t above = sixteen(0) | std::uint64_t{1} << kWidth;
    if constexpr (kWidth == 32) above |= sixteen(16) << 16;
    return static_cast<unsigned>(std::countr_zero(above));
  }
#endif
  unsigned n = 0;
  for (unsigned i = 0; i < kWidth; ++i) n += keys[i] <= key;
  return n;
}
}  // namespace detail

/// Key: an unsigned integer of which only the lower half is used, so that keys compare alike as signed numbers: that is
/// what every x86-64 can do for many at once. The greatest signed value is never used (it pads the nodes).
template <class Key, class Value = Nothing>
class OrderedMap {
  static constexpr unsigned kWidth = 16;       // of a leaf: its 32-bit keys fill one cache line
  static constexpr unsigned kInnerWidth = 32;  // of the nodes above: few, so mostly cached; wider makes fewer levels
  static constexpr Key kPadding = static_cast<Key>(std::numeric_limits<std::make_signed_t<Key>>::max());
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
    unsigned n = detail::count_not_above(leaves_[leaf].keys, key);
    return n > 0 ? Cursor{leaf, n - 1} : last_of(leaves_[leaf].previous);
  }

  /// Starts to bring a leaf into the cache; the same numbers as below.
  void prefetch(std::uint32_t likely) const {
    __builtin_prefetch(&leaves_[likely]);
    prefetch_values(leaves_[likely]);
  }

  /// floor() where the entry probably lies in the leaf `likely` of this tree (any number that once was a leaf's will
  /// do).
  Cursor floor(const Tree& tree, Key key, std::uint32_t likely) const {
    const Leaf& leaf = leaves_[likely];
    prefetch_values(leaf);
    unsigned n = detail::count_not_above(leaf.keys, key);
    bool certain = n > 0 && (leaf.keys[n - 1] == key || (n < kWidth && leaf.keys[n] != kPadding));
    return certain ? Cursor{likely, n - 1} : floor(tree, key);
  }

  /// The entry with the least key >= `key`; invalid when there is none.
  Cursor at_least(const Tree& tree, Key key) const {
    if (tree.empty()) return {};
    Index leaf = descend(tree, key);
    unsigned n = key == 0 ? 0 : detail::count_not_above(leaves_[leaf].keys, key - 1);
    return used(leaf, n) ? Cursor{leaf, n} : first_of(leaves_[leaf].next);
  }

  Cursor first(const Tree& tree) const {
    if (tree.empty()) return {};
    Index node = tree.root;
    for (unsigned level = 0; level < tree.height; ++level) node = inners_[node].children[0];
    return {node, 0};
  }
  Cursor last(const Tree& tree) const { return floor(tree, kPadding - 1); }

  Cursor next(Cursor c) const {
    return used(c.leaf, c.slot + 1) ? Cursor{c.leaf, c.slot + 1} : first_of(leaves_[c.leaf].next);
  }
  Cursor previous(Cursor c) const {
    return c.slot > 0 ? Cursor{c.leaf, c.slot - 1} : last_of(leaves_[c.leaf].previous);
  }

  /// Inserts a key that is not there yet; returns its place.
  Cursor insert(Tree& tree, Key key, const Value& value) {
    if (tree.root == kNone) return insert_from_root(tree, key, value);
    Index leaf = descend(tree, key);
    unsigned slot = detail::count_not_above(leaves_[leaf].keys, key);
    bool lowest = slot == 0 && tree.height > 0;  // the nodes above must hear of it
    if (lowest || used(leaf, kWidth - 1)) return insert_from_root(tree, key, value);
    put(leaf, slot, key, value);
    ++tree.size;
    return {leaf, slot};
  }

  /// The same where the place is known: right behind `c`. Cheaper as long as the node has room and does not end there
  /// (the nodes above may send a key behind a node's end to the next node).
  Cursor insert_behind(Tree& tree, Cursor c, Key key, const Value& value) {
    if (used(c.leaf, kWidth - 1) || !used(c.leaf, c.slot + 1)) return insert(tree, key, value);
    put(c.leaf, c.slot + 1, key, value);
    ++tree.size;
    return {c.leaf, c.slot + 1};
  }

  /// Removes the entry. Cursors to smaller keys stay valid.
  void erase(Tree& tree, Cursor c) {
    --tree.size;
    if (tree.height > 0 && !used(c.leaf, 1)) return erase_leaf(tree, c.leaf);
    Leaf& leaf = leaves_[c.leaf];
    unsigned last = c.slot;
    for (; last + 1 < kWidth && leaf.keys[last + 1] != kPadding; ++last) {
      leaf.keys[last] = leaf.keys[last + 1];
      if constexpr (kHasValues) leaf.values[last] = leaf.values[last + 1];
    }
    leaf.keys[last] = kPadding;
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
    alignas(64) Key keys[kWidth];
    [[no_unique_address]] detail::ValueArray<Value, kWidth> values;
    Index next;
    Index previous;
  };
  // children[i] holds the keys from keys[i] up to below keys[i + 1]; the first child also all smaller ones.
  struct Inner {
    alignas(64) Key keys[kInnerWidth];
    Index children[kInnerWidth];
  };
  struct Path {
    Index node[kMaxHeight];
    std::uint32_t slot[kMaxHeight];
  };

  bool used(Index leaf, unsigned slot) const { return slot < kWidth && leaves_[leaf].keys[slot] != kPadding; }
  Cursor first_of(Index leaf) const { return leaf == kNone ? Cursor{} : Cursor{leaf, 0}; }
  Cursor last_of(Index leaf) const {
    return leaf == kNone ? Cursor{} : Cursor{leaf, detail::count_not_above(leaves_[leaf].keys, Key{kPadding - 1}) - 1};
  }

  // Values lie on other cache lines than their keys, which must be searched first.
  static void prefetch_values(const Leaf& leaf) {
    for (std::size_t at = sizeof leaf.keys; at < sizeof(Leaf); at += 64) {
      __builtin_prefetch(reinterpret_cast<const char*>(&leaf) + at);
    }
  }

  static unsigned child_of(const Inner& inner, Key key) {
    unsigned n = detail::count_not_above(inner.keys, key);
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

  // Also the long way of insert(): a first leaf, a descent, a split. Kept out of line, for it is rare.
  [[gnu::noinline]] Cursor insert_from_root(Tree& tree, Key key, const Value& value) {
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
    unsigned slot = detail::count_not_above(leaves_[leaf].keys, key);
    if (used(leaf, kWidth - 1)) {
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

  [[gnu::noinline]] void erase_leaf(Tree& tree, Index leaf) {
    Path path;
    descend(tree, leaves_[leaf].keys[0], path);
    drop_leaf(leaf);
    remove_child(tree, path, tree.height);
  }

  Index new_leaf() {
    Index i = leaves_.take();
    Leaf& leaf = leaves_[i];
    for (Key& k : leaf.keys) k = kPadding;
    leaf.next = leaf.previous = kNone;
    return i;
  }

  void put(Index index, unsigned slot, Key key, const Value& value) {
    Leaf& leaf = leaves_[index];
    Value moving = value;
    for (;; ++slot) {
      std::swap(key, leaf.keys[slot]);
      if constexpr (kHasValues) std::swap(moving, leaf.values[slot]);
      if (key == kPadding) break;
    }
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
    right.next = left.next;
    right.previous = left_index;
    if (right.next != kNone) leaves_[right.next].previous = right_index;
    left.next = right_index;
    return right_index;
  }

  void drop_leaf(Index index) {
    Leaf& leaf = leaves_[index];
    leaf.keys[0] = kPadding;  // whoever still takes it for a likely leaf finds nothing
    if (leaf.previous != kNone) leaves_[leaf.previous].next = leaf.next;
    if (leaf.next != kNone) leaves_[leaf.next].previous = leaf.previous;
    leaves_.give(index);
  }

  Index new_inner() {
    Index i = inners_.take();
    for (Key& k : inners_[i].keys) k = kPadding;
    return i;
  }

  static void put_child(Inner& inner, unsigned slot, Key key, Index child) {
    std::memmove(inner.keys + slot + 1, inner.keys + slot, (kInnerWidth - 1 - slot) * sizeof(Key));
    std::memmove(inner.children + slot + 1, inner.children + slot, (kInnerWidth - 1 - slot) * sizeof(Index));
    inner.keys[slot] = key;
    inner.children[slot] = child;
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
      if (inner.keys[kInnerWidth - 1] == kPadding) {
        put_child(inner, slot, key, child);
        return;
      }
      Index right_index = new_inner();
      Inner& right = inners_[right_index];
      for (unsigned i = kInnerWidth / 2; i < kInnerWidth; ++i) {
        right.keys[i - kInnerWidth / 2] = inner.keys[i];
        right.children[i - kInnerWidth / 2] = inner.children[i];
        inner.keys[i] = kPadding;
      }
      if (slot > kInnerWidth / 2) {
        put_child(right, slot - kInnerWidth / 2, key, child);
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
      unsigned slot = path.slot[level];
      std::memmove(inner.keys + slot, inner.keys + slot + 1, (kInnerWidth - 1 - slot) * sizeof(Key));
      std::memmove(inner.children + slot, inner.children + slot + 1, (kInnerWidth - 1 - slot) * sizeof(Index));
      inner.keys[kInnerWidth - 1] = kPadding;
      if (inner.keys[0] != kPadding) break;
      inners_.give(path.node[level]);
    }
    while (tree.height > 0 && inners_[tree.root].keys[1] == kPadding) {
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
