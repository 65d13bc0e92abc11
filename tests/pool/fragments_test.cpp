// Histories survive joining and cutting.
#include "pool/fragments.h"

#include "tests/catch.h"

using namespace gpupool;

namespace {

constexpr std::uint64_t kHugeRecord = std::uint64_t{1} << 50;  // too large to be spelled out in a history

std::vector<Fragment> all(const Fragments& fragments, History history, Range range) {
  std::vector<Fragment> out;
  fragments.visit(history, range, {0, ~Granules{0}}, [&](const Fragment& f) {
    out.push_back(f);
    return true;
  });
  return out;
}

}  // namespace

TEST_CASE("fragments with the same history join, others keep theirs") {
  for (std::uint64_t record : {std::uint64_t{5}, kHugeRecord}) {
    Fragments fragments;
    History history =
        fragments.join(fragments.make({0, 10}, 1, record), {0, 10}, fragments.make({10, 20}, 1, record), {10, 20});
    REQUIRE(all(fragments, history, {0, 20}).size() == 1);
    REQUIRE(fragments.count(1) == 1);
    history = fragments.join(history, {0, 20}, fragments.make({20, 30}, 1, record + 1), {20, 30});
    History clean_then_freed = fragments.join({}, {30, 40}, fragments.make({40, 50}, 1, record + 1), {40, 50});
    history = fragments.join(history, {0, 30}, clean_then_freed, {30, 50});
    auto parts = all(fragments, history, {0, 50});
    REQUIRE(parts.size() == 3);
    REQUIRE(parts[0].range == Range{0, 20});
    REQUIRE(parts[1].range == Range{20, 30});
    REQUIRE(parts[1].record == record + 1);
    REQUIRE(parts[2].range == Range{40, 50});
    REQUIRE(fragments.count(1) == 3);
    REQUIRE(fragments.in_lists() == 3);
  }
}

TEST_CASE("cutting through a fragment keeps both halves' history") {
  Fragments fragments;
  History history = fragments.join(fragments.make({0, 10}, 1, 5), {0, 10}, {}, {10, 20});
  history = fragments.join(history, {0, 20}, fragments.make({20, 40}, 2, 7), {20, 40});
  History back = fragments.cut(history, {0, 40}, 30);
  auto front_parts = all(fragments, history, {0, 30});
  auto back_parts = all(fragments, back, {30, 40});
  REQUIRE(front_parts.size() == 2);
  REQUIRE(front_parts[1].range == Range{20, 30});
  REQUIRE(back_parts.size() == 1);
  REQUIRE(back_parts[0].range == Range{30, 40});
  REQUIRE(back_parts[0].record == 7);
  // A cut in the clean bytes between two fragments copies nothing.
  History tail = fragments.cut(history, {0, 30}, 15);
  REQUIRE(all(fragments, history, {0, 15}).size() == 1);
  REQUIRE(all(fragments, tail, {15, 30}).size() == 1);
  REQUIRE(fragments.in_use() == 3);
  // Cuts at the very ends leave one side empty.
  REQUIRE(fragments.cut(tail, {15, 30}, 50).clean());
  History whole = fragments.cut(history, {0, 15}, 0);
  REQUIRE(history.clean());
  for (History h : {whole, tail, back}) fragments.discard(h);
  REQUIRE(fragments.in_use() == 0);
  REQUIRE(fragments.in_lists() == 0);
  REQUIRE(fragments.count(1) == 0);
  REQUIRE(fragments.count(2) == 0);
}

TEST_CASE("a fragment that covers its hole needs no list") {
  Fragments fragments;
  History history = fragments.make({10, 40}, 3, 9);
  History back = fragments.cut(history, {10, 40}, 20);
  REQUIRE(fragments.count(3) == 2);
  REQUIRE(fragments.in_lists() == 0);
  REQUIRE(all(fragments, back, {20, 40}).at(0).range == Range{20, 40});
  REQUIRE(all(fragments, history, {10, 20}).at(0).record == 9);
  // Visits are confined to the part that is asked for.
  REQUIRE(fragments.visit(back, {20, 40}, {0, 20}, [](const Fragment&) { return false; }));
  history = fragments.join(history, {10, 20}, back, {20, 40});
  REQUIRE(fragments.count(3) == 1);
  fragments.discard(history);
  REQUIRE(fragments.in_use() == 0);
}
