// Histories survive joining and cutting.
#include "pool/fragments.h"

#include "tests/catch.h"

using namespace gpupool;

namespace {

std::vector<Fragment> all(const Fragments& fragments, FragmentList list) {
  std::vector<Fragment> out;
  fragments.visit(list, {0, ~Granules{0}}, [&](const Fragment& f) { out.push_back(f); return true; });
  return out;
}

}  // namespace

TEST_CASE("fragments with the same history join, others keep theirs") {
  Fragments fragments;
  FragmentList list = fragments.join(fragments.make({0, 10}, 1, 5), fragments.make({10, 20}, 1, 5));
  REQUIRE(all(fragments, list).size() == 1);
  list = fragments.join(list, fragments.make({20, 30}, 1, 6));
  list = fragments.join(list, fragments.make({40, 50}, 1, 6));
  auto parts = all(fragments, list);
  REQUIRE(parts.size() == 3);
  REQUIRE(parts[0].range == Range{0, 20});
  REQUIRE(parts[1].record == 6);
  REQUIRE(fragments.count(1) == 3);
}

TEST_CASE("cutting through a fragment keeps both halves' history") {
  Fragments fragments;
  FragmentList list = fragments.join(fragments.make({0, 10}, 1, 5), fragments.make({20, 40}, 2, 7));
  FragmentList back = fragments.cut(list, 30);
  auto front_parts = all(fragments, list);
  auto back_parts = all(fragments, back);
  REQUIRE(front_parts.size() == 2);
  REQUIRE(front_parts[1].range == Range{20, 30});
  REQUIRE(back_parts.size() == 1);
  REQUIRE(back_parts[0].range == Range{30, 40});
  REQUIRE(back_parts[0].record == 7);
  // A cut in the clean bytes between two fragments copies nothing.
  FragmentList tail = fragments.cut(list, 15);
  REQUIRE(all(fragments, list).size() == 1);
  REQUIRE(all(fragments, tail).size() == 1);
  // Cuts at the very ends leave one side empty.
  REQUIRE(fragments.cut(tail, 50).empty());
  FragmentList whole = fragments.cut(list, 0);
  REQUIRE(list.empty());
  fragments.discard(whole);
  fragments.discard(tail);
  fragments.discard(back);
  REQUIRE(fragments.in_use() == 0);
  REQUIRE(fragments.count(1) == 0);
  REQUIRE(fragments.count(2) == 0);
}
