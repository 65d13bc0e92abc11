// The B+ tree against std::map, by random insertions and removals in several patterns.
#include "pool/ordered_map.h"

#include <map>
#include <random>
#include <set>

#include "tests/catch.h"

using namespace gpupool;

namespace {

template <class Key>
void compare_with_reference(unsigned seed, Key span, unsigned operations) {
  OrderedMap<Key, std::uint32_t> map;
  typename OrderedMap<Key, std::uint32_t>::Tree tree;
  std::map<Key, std::uint32_t> reference;
  std::mt19937_64 random(seed);
  for (unsigned i = 0; i < operations; ++i) {
    // Alternating phases of growth and shrinkage, so that nodes split, empty and vanish.
    bool grow = (i / 3000) % 2 == 0;
    Key key = static_cast<Key>(random() % span);
    auto found = reference.find(key);
    if (found == reference.end() && (grow || random() % 8 == 0)) {
      reference[key] = i;
      map.insert(tree, key, i);
    } else if (found != reference.end() && (!grow || random() % 8 == 0)) {
      map.erase(tree, key);
      reference.erase(found);
    }
    auto above = reference.lower_bound(key);
    auto c = map.at_least(tree, key);
    REQUIRE(c.valid() == (above != reference.end()));
    if (c.valid()) {
      REQUIRE(map.key(c) == above->first);
      REQUIRE(map.value(c) == above->second);
    }
    auto below = reference.upper_bound(key);
    auto f = map.floor(tree, key);
    REQUIRE(f.valid() == (below != reference.begin()));
    if (f.valid()) REQUIRE(map.key(f) == std::prev(below)->first);
    if (i % 500 == 0) REQUIRE(map.validate(tree) == nullptr);
  }
  REQUIRE(tree.size == reference.size());
  auto c = map.first(tree);
  for (const auto& [key, value] : reference) {
    REQUIRE(map.key(c) == key);
    c = map.next(c);
  }
  REQUIRE(!c.valid());
}

}  // namespace

TEST_CASE("ordered_map behaves as std::map") {
  compare_with_reference<std::uint32_t>(1, 50, 20000);
  compare_with_reference<std::uint32_t>(2, 5000, 60000);
  compare_with_reference<std::uint64_t>(3, std::uint64_t{1} << 40, 60000);
}

TEST_CASE("ordered_map with keys that move through the range") {
  // Removing from the front and inserting just below what is left: the first child of a node takes keys below its old
  // bound.
  OrderedMap<std::uint32_t> map;
  OrderedMap<std::uint32_t>::Tree tree;
  std::mt19937 random(5);
  for (std::uint32_t i = 0; i < 40000; i += 4) map.insert(tree, 1000000 + i, {});
  for (unsigned round = 0; round < 200; ++round) {
    for (unsigned i = 0; i < 40; ++i) map.erase(tree, map.key(map.first(tree)));
    std::uint32_t front = map.key(map.first(tree));
    for (std::uint32_t i = 1; i < 60; ++i) map.insert(tree, front - i, {});
    REQUIRE(map.validate(tree) == nullptr);
  }
}

TEST_CASE("ordered_map in ascending and descending order") {
  OrderedMap<std::uint32_t> map;
  OrderedMap<std::uint32_t>::Tree tree;
  for (std::uint32_t i = 0; i < 10000; ++i) map.insert(tree, i, {});
  REQUIRE(map.validate(tree) == nullptr);
  for (std::uint32_t i = 0; i < 10000; ++i) map.erase(tree, map.key(map.first(tree)));
  REQUIRE(tree.empty());
  for (std::uint32_t i = 10000; i > 0; --i) map.insert(tree, i, {});
  REQUIRE(map.validate(tree) == nullptr);
  while (!tree.empty()) map.erase(tree, map.key(map.last(tree)));
  REQUIRE(!map.first(tree).valid());
}

TEST_CASE("nodes that were reserved, those that were left over and those given back are all different ones") {
  NodeStore<std::uint64_t> store;
  std::set<std::uint64_t*> taken;
  for (unsigned i = 0; i < 4090; ++i) taken.insert(store.take());
  store.give(*taken.begin());
  taken.erase(taken.begin());
  store.reserve(20);  // the first chunk has 4096
  store.reserve(20);
  for (unsigned i = 0; i < 7 + 20; ++i) CHECK(taken.insert(store.take()).second);
  CHECK(taken.size() == 4089 + 27);
}
