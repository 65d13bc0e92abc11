// The index of holes against a sorted set of (size, place).
#include "pool/hole_index.h"

#include <random>
#include <set>

#include "tests/catch.h"

using namespace gpupool;

TEST_CASE("hole_index finds the smallest fit, lowest place first") {
  HoleIndex index;
  std::set<std::pair<Granules, Granules>> reference;
  std::mt19937 random(7);
  for (unsigned i = 0; i < 40000; ++i) {
    Granules size = random() % 4 == 0 ? Granules(2000 + random() % 100000) : Granules(1 + random() % 300);
    if (reference.size() < 2000 && random() % 2 == 0) {
      Granules begin = Granules(random() % 4000) << 18;
      if (reference.insert({size, begin}).second) index.insert({begin, begin + size});
    } else if (!reference.empty()) {
      auto it = reference.lower_bound({size, 0});
      if (it == reference.end()) it = reference.begin();
      index.erase({it->second, it->second + it->first});
      reference.erase(it);
    }
    auto expected = reference.lower_bound({size, 0});
    Range fit = index.best_fit(size);
    REQUIRE(fit.empty() == (expected == reference.end()));
    if (!fit.empty()) {
      REQUIRE(fit.size() == expected->first);
      REQUIRE(fit.begin == expected->second);
      auto after = std::next(expected);
      Range next = index.following(fit);
      REQUIRE(next.empty() == (after == reference.end()));
      if (!next.empty()) REQUIRE(next == Range{after->second, after->second + after->first});
    }
    if (!reference.empty()) REQUIRE(index.largest().size() == reference.rbegin()->first);
    if (i % 1000 == 0) REQUIRE(index.validate() == nullptr);
  }
}
