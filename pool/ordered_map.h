// An ordered map as a B+ tree: holes by size and place, handles and gaps by place. Built for small integer keys and
// small plain values: wide nodes, keys apart from values, nodes that never move. A node's unused keys are the greatest
// key, so that all keys are compared, and moved, at once and no count is kept. Leaves form a list in key order. Many
// small trees may share one store. Erasing never rebalances: a node goes when it is empty, so memory is bounded by the
// most entries ever held. Not thread safe; the owner's lock protects it. Source of the structure: Comer, "The
// Ubiquitous B-Tree" (1979).
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

#include "pool/node_store.h"

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

// Four keys at once, as every processor of interest has them; they are below half of their range.
using FourKeys = std::int32_t __attribute__((vector_size(16)));
inline FourKeys load(const std::uint32_t* keys) {
  FourKeys four;
  std::memcpy(&four, keys, sizeof four);
  return four;
}
inline void store(std::uint32_t* keys, FourKeys four) { std::memcpy(keys, &four, sizeof four); }

// All one place further, a 0 behind them.
inline FourKeys moved_up(FourKeys four) {
#if defined(__SSE2__)
  return reinterpret_cast<FourKeys>(_mm_slli_si128(reinterpret_cast<__m128i>(four), 4));
#else
  return __builtin_shufflevector(four, FourKeys{}, 4, 0, 1, 2);
#endif
}

inline FourKeys moved_down(FourKeys four) {
#if defined(__SSE2__)
  return reinterpret_cast<FourKeys>(_mm_srli_si128(reinterpret_cast<__m128i>(four), 4));
#else
  return __builtin_shufflevector(four, FourKeys{}, 1, 2, 3, 4);
#endif
}

/// Puts a key that is not there in its place among ascending keys, of which the last is unused. Without a branch: where
/// it goes is not to be guessed.
inline void put_key(std::uint32_t (&keys)[16], std::uint32_t key) {
  const std::int32_t k = static_cast<std::int32_t>(key);
  const FourKeys wanted{k, k, k, k};
  const FourKeys now[4] = {load(keys), load(keys + 4), load(keys + 8), load(keys + 12)};
  const FourKeys left[4] = {moved_up(now[0]), load(keys + 3), load(keys + 7), load(keys + 11)};
  for (unsigned i = 0; i < 4; ++i) {
    const FourKeys moved = left[i] > wanted ? left[i] : wanted;
    store(keys + 4 * i, now[i] > wanted ? moved : now[i]);
  }
}

/// Takes a key that is there out of ascending keys; the last becomes `unused`.
inline void remove_key(std::uint32_t (&keys)[16], std::uint32_t key, std::uint32_t unused) {
  const std::int32_t k = static_cast<std::int32_t>(key);
  const FourKeys wanted{k, k, k, k};
  const FourKeys now[4] = {load(keys), load(keys + 4), load(keys + 8), load(keys + 12)};
  const FourKeys right[4] = {load(keys + 1), load(keys + 5), load(keys + 9), moved_down(now[3])};
  for (unsigned i = 0; i < 4; ++i) store(keys + 4 * i, wanted > now[i] ? now[i] : right[i]);
  keys[15] = unused;
}
}  // namespace detail

/// Key: an unsigned integer of which only the lower half is used, so that keys compare alike as signed numbers: that is
/// what every x86-64 can do for many at once. The greatest signed value is never used (it pads the nodes).
template <class Key, class Value = Nothing>
class OrderedMap {
  static constexpr unsigned kWidth = 16;       // of a leaf: its 32-bit keys fill one cache line
  static constexpr unsigned kInnerWidth = 32;  // of the nodes above: few, so mostly cached; wider makes fewer levels
  static constexpr Key kPadding = static_cast<Key>(std::numeric_limits<std::make_signed_t<Key>>::max());
  static constexpr unsigned kMaxHeight = 12;
  static constexpr bool kHasValues = !std::is_same_v<Value, Nothing>;
  static constexpr bool kKeysAlone = !kHasValues && sizeof(Key) == 4;

  struct Leaf {
    alignas(64) Key keys[kWidth];
    [[no_unique_address]] detail::ValueArray<Value, kWidth> values;
    Leaf* next;
    Leaf* previous;
  };
  // children[i] holds the keys from keys[i] up to below keys[i + 1]; the first child also all smaller ones.
  struct Inner {
    alignas(64) Key keys[kInnerWidth];
    void* children[kInnerWidth];
  };
  struct Path {
    Inner* node[kMaxHeight];
    unsigned slot[kMaxHeight];
  };

 public:
  /// One tree. Plain, so that thousands of mostly tiny ones cost little.
  struct Tree {
    void* root = nullptr;  // a leaf where height is 0
    std::uint32_t size = 0;
    std::uint32_t height = 0;  // levels above the leaves
    bool empty() const { return size == 0; }
  };

  /// A place in a tree; invalid after any insert or erase in that tree.
  struct Cursor {
    Leaf* leaf = nullptr;
    unsigned slot = 0;
    bool valid() const { return leaf != nullptr; }
  };

  Key key(Cursor c) const { return c.leaf->keys[c.slot]; }
  decltype(auto) value(Cursor c) const { return c.leaf->values[c.slot]; }

  /// The entry with the greatest key <= `key`; invalid when there is none. Cost: O(log n).
  Cursor floor(const Tree& tree, Key key) const {
    if (tree.empty()) return {};
    Leaf* leaf = descend(tree, key);
    unsigned n = detail::count_not_above(leaf->keys, key);
    return n > 0 ? Cursor{leaf, n - 1} : last_of(leaf->previous);
  }

  /// The entry with the least key >= `key`; invalid when there is none.
  Cursor at_least(const Tree& tree, Key key) const {
    if (tree.empty()) return {};
    Leaf* leaf = descend(tree, key);
    unsigned n = key == 0 ? 0 : detail::count_not_above(leaf->keys, key - 1);
    return used(leaf, n) ? Cursor{leaf, n} : first_of(leaf->next);
  }

  Cursor first(const Tree& tree) const {
    if (tree.empty()) return {};
    void* node = tree.root;
    for (unsigned level = 0; level < tree.height; ++level) node = static_cast<Inner*>(node)->children[0];
    return {static_cast<Leaf*>(node), 0};
  }
  Cursor last(const Tree& tree) const { return floor(tree, kPadding - 1); }

  Cursor next(Cursor c) const { return used(c.leaf, c.slot + 1) ? Cursor{c.leaf, c.slot + 1} : first_of(c.leaf->next); }
  Cursor previous(Cursor c) const { return c.slot > 0 ? Cursor{c.leaf, c.slot - 1} : last_of(c.leaf->previous); }

  /// Inserts a key that is not there yet. Throws std::bad_alloc, and then has changed nothing.
  void insert(Tree& tree, Key key, const Value& value) {
    if (tree.root == nullptr) return insert_from_root(tree, key, value);
    Leaf* leaf = descend(tree, key);
    const bool lowest = tree.height > 0 && key < leaf->keys[0];  // the nodes above must hear of it
    if (lowest || used(leaf, kWidth - 1)) return insert_from_root(tree, key, value);
    put(leaf, key, value);
    ++tree.size;
  }

  /// Removes a key that is there.
  void erase(Tree& tree, Key key) {
    --tree.size;
    Leaf* leaf = descend(tree, key);
    if (tree.height > 0 && !used(leaf, 1)) return erase_leaf(tree, leaf);
    if constexpr (kKeysAlone) {
      detail::remove_key(leaf->keys, key, kPadding);
    } else {
      unsigned at = detail::count_not_above(leaf->keys, key) - 1;
      for (; at + 1 < kWidth && leaf->keys[at + 1] != kPadding; ++at) {
        leaf->keys[at] = leaf->keys[at + 1];
        if constexpr (kHasValues) leaf->values[at] = leaf->values[at + 1];
      }
      leaf->keys[at] = kPadding;
    }
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
  static bool used(const Leaf* leaf, unsigned slot) { return slot < kWidth && leaf->keys[slot] != kPadding; }
  static Cursor first_of(Leaf* leaf) { return {leaf, 0}; }
  static Cursor last_of(Leaf* leaf) {
    return leaf == nullptr ? Cursor{} : Cursor{leaf, detail::count_not_above(leaf->keys, Key{kPadding - 1}) - 1};
  }
  static unsigned child_of(const Inner& inner, Key key) {
    unsigned n = detail::count_not_above(inner.keys, key);
    return n == 0 ? 0 : n - 1;
  }

  static Leaf* descend(const Tree& tree, Key key) {
    void* node = tree.root;
    for (unsigned level = 0; level < tree.height; ++level) {
      const Inner* inner = static_cast<Inner*>(node);
      node = inner->children[child_of(*inner, key)];
    }
    return static_cast<Leaf*>(node);
  }
  static Leaf* descend(const Tree& tree, Key key, Path& path) {
    void* node = tree.root;
    for (unsigned level = 0; level < tree.height; ++level) {
      Inner* inner = static_cast<Inner*>(node);
      path.node[level] = inner;
      path.slot[level] = child_of(*inner, key);
      node = inner->children[path.slot[level]];
    }
    return static_cast<Leaf*>(node);
  }

  // Also the long way of insert(): a first leaf, a descent, a split. Kept out of line, for it is rare.
  [[gnu::noinline]] void insert_from_root(Tree& tree, Key key, const Value& value) {
    if (tree.root == nullptr) {
      tree.root = new_leaf();
      tree.height = 0;
    }
    Path path;
    Leaf* leaf = descend(tree, key, path);
    if (used(leaf, kWidth - 1)) {
      leaves_.reserve(1);
      inners_.reserve(tree.height + 1);
    }
    for (unsigned level = 0; level < tree.height; ++level) {
      Inner& inner = *path.node[level];
      if (key < inner.keys[0]) inner.keys[0] = key;  // its first child now begins lower
    }
    if (used(leaf, kWidth - 1)) {
      Leaf* right = split_leaf(leaf);
      add_child(tree, path, tree.height, right->keys[0], right);
      if (key > right->keys[0]) leaf = right;
    }
    put(leaf, key, value);
    ++tree.size;
  }

  [[gnu::noinline]] void erase_leaf(Tree& tree, Leaf* leaf) {
    Path path;
    descend(tree, leaf->keys[0], path);
    if (leaf->previous != nullptr) leaf->previous->next = leaf->next;
    if (leaf->next != nullptr) leaf->next->previous = leaf->previous;
    leaves_.give(leaf);
    remove_child(tree, path, tree.height);
  }

  Leaf* new_leaf() {
    Leaf* leaf = leaves_.take();
    for (Key& k : leaf->keys) k = kPadding;
    leaf->next = leaf->previous = nullptr;
    return leaf;
  }

  static void put(Leaf* leaf, Key key, const Value& value) {
    if constexpr (kKeysAlone) {
      detail::put_key(leaf->keys, key);
    } else {
      Value moving = value;
      for (unsigned slot = detail::count_not_above(leaf->keys, key);; ++slot) {
        std::swap(key, leaf->keys[slot]);
        if constexpr (kHasValues) std::swap(moving, leaf->values[slot]);
        if (key == kPadding) break;
      }
    }
  }

  Leaf* split_leaf(Leaf* left) {
    Leaf* right = new_leaf();
    for (unsigned i = kWidth / 2; i < kWidth; ++i) {
      right->keys[i - kWidth / 2] = left->keys[i];
      if constexpr (kHasValues) right->values[i - kWidth / 2] = left->values[i];
      left->keys[i] = kPadding;
    }
    right->next = left->next;
    right->previous = left;
    if (right->next != nullptr) right->next->previous = right;
    left->next = right;
    return right;
  }

  Inner* new_inner() {
    Inner* inner = inners_.take();
    for (Key& k : inner->keys) k = kPadding;
    return inner;
  }

  static void put_child(Inner& inner, unsigned slot, Key key, void* child) {
    std::memmove(inner.keys + slot + 1, inner.keys + slot, (kInnerWidth - 1 - slot) * sizeof(Key));
    std::memmove(inner.children + slot + 1, inner.children + slot, (kInnerWidth - 1 - slot) * sizeof(void*));
    inner.keys[slot] = key;
    inner.children[slot] = child;
  }

  // Hangs `child` behind the child at path[level - 1], splitting upwards as needed.
  void add_child(Tree& tree, const Path& path, unsigned level, Key key, void* child) {
    while (true) {
      if (level == 0) {
        Inner* root = new_inner();
        put_child(*root, 0, 0, tree.root);
        put_child(*root, 1, key, child);
        tree.root = root;
        ++tree.height;
        return;
      }
      --level;
      Inner& inner = *path.node[level];
      unsigned slot = path.slot[level] + 1;
      if (inner.keys[kInnerWidth - 1] == kPadding) {
        put_child(inner, slot, key, child);
        return;
      }
      Inner* right = new_inner();
      for (unsigned i = kInnerWidth / 2; i < kInnerWidth; ++i) {
        right->keys[i - kInnerWidth / 2] = inner.keys[i];
        right->children[i - kInnerWidth / 2] = inner.children[i];
        inner.keys[i] = kPadding;
      }
      if (slot > kInnerWidth / 2) {
        put_child(*right, slot - kInnerWidth / 2, key, child);
      } else {
        put_child(inner, slot, key, child);
      }
      key = right->keys[0];
      child = right;
    }
  }

  void remove_child(Tree& tree, const Path& path, unsigned level) {
    while (level > 0) {
      --level;
      Inner* inner = path.node[level];
      unsigned slot = path.slot[level];
      std::memmove(inner->keys + slot, inner->keys + slot + 1, (kInnerWidth - 1 - slot) * sizeof(Key));
      std::memmove(inner->children + slot, inner->children + slot + 1, (kInnerWidth - 1 - slot) * sizeof(void*));
      inner->keys[kInnerWidth - 1] = kPadding;
      if (inner->keys[0] != kPadding) break;
      inners_.give(inner);
    }
    while (tree.height > 0 && static_cast<Inner*>(tree.root)->keys[1] == kPadding) {
      Inner* root = static_cast<Inner*>(tree.root);
      tree.root = root->children[0];
      inners_.give(root);
      --tree.height;
    }
  }

  NodeStore<Leaf> leaves_;
  NodeStore<Inner> inners_;
};

}  // namespace gpupool
