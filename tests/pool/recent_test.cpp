// The blocks freed last against a plain list of them.
#include "pool/recent.h"

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

#include "tests/catch.h"

using namespace gpupool;

TEST_CASE("recent gives back the oldest of a size, and what has waited longest has to leave") {
  struct Entry {
    Range block;
    unsigned added;
  };
  Recent recent;
  std::deque<Entry> reference;  // by age
  std::mt19937 random(11);
  const auto oldest_of = [&](Granules size) {
    return std::ranges::find_if(reference, [&](const Entry& entry) { return entry.block.size() == size; });
  };
  unsigned left = 0;
  Granules next_place = 0;
  for (unsigned i = 0, added = 0; i < 40000; ++i) {
    const auto size = static_cast<Granules>(1 + random() % (i < 20000 ? 300 : 8));
    const auto oldest = oldest_of(size);
    REQUIRE((recent.oldest(size) == nullptr) == (oldest == reference.end()));
    if (oldest != reference.end()) REQUIRE(recent.oldest(size)->place == oldest->block.begin);
    if (oldest != reference.end() && random() % 4 != 0) {
      // Mostly the oldest of its size, sometimes a newer one.
      auto chosen = oldest;
      for (auto entry = oldest; random() % 3 == 0 && entry != reference.end(); ++entry) {
        if (entry->block.size() == size) chosen = entry;
      }
      std::vector<Granules> seen;
      const auto note = [&](Granules place, std::uint32_t hint) {
        REQUIRE(hint == place + 1);
        seen.push_back(place);
        return place == chosen->block.begin;
      };
      const bool found = recent.visit(size, 3, note);
      REQUIRE(seen.front() == oldest->block.begin);
      REQUIRE(found == (seen.back() == chosen->block.begin));
      REQUIRE(seen.size() <= 3);
      if (chosen == oldest && i % 2 == 0)
        recent.remove_oldest(size);
      else
        recent.remove(chosen->block);
      reference.erase(chosen);
    } else {
      // The place in the ring is taken by what was added as many additions ago as there are places, if it still waits.
      const auto waits_at = [&](unsigned turn) {
        const auto it = std::ranges::find_if(
            reference, [&](const Entry& entry) { return entry.added + Recent::kMost == added + turn; });
        return it == reference.end() ? Recent::kNowhere : it->block.begin;
      };
      for (unsigned turn : {0u, 1u, 5u, Recent::kAtOnce}) REQUIRE(recent.in_turn(turn) == waits_at(turn));
      REQUIRE(recent.full() == (waits_at(0) != Recent::kNowhere));
      if (recent.full()) {
        for (unsigned turn = 0; turn < Recent::kAtOnce; ++turn) {
          if (recent.in_turn(turn) == Recent::kNowhere) continue;
          REQUIRE(recent.in_turn(turn) == reference.front().block.begin);
          recent.remove(reference.front().block);
          reference.pop_front();
          ++left;
        }
        REQUIRE_FALSE(recent.full());
      }
      const Range block{next_place, next_place + size};
      next_place += size;
      recent.add(block, block.begin + 1);
      reference.push_back({block, added++});
      REQUIRE(recent.holds(block));
    }
    REQUIRE(recent.count() == reference.size());
    if (i % 500 == 0) {
      std::uint64_t sum = 0;
      for (const Entry& entry : reference) sum += entry.block.size();
      REQUIRE(recent.granules() == sum);
      REQUIRE(recent.validate() == nullptr);
    }
  }
  REQUIRE(left > 100);
}

TEST_CASE("recent keeps small blocks only") {
  const Recent recent;
  REQUIRE(Recent::keeps(1));
  REQUIRE(Recent::keeps(Recent::kSizes - 1));
  REQUIRE_FALSE(Recent::keeps(Recent::kSizes));
  REQUIRE(recent.oldest(Recent::kSizes) == nullptr);
  REQUIRE_FALSE(recent.holds({0, Recent::kSizes}));
  REQUIRE_FALSE(recent.full());
}
