// The table of segments against std::map: neighbours, what covers a place, growth of the table.
#include "pool/segments.h"

#include <iterator>
#include <map>
#include <random>
#include <set>

#include "tests/catch.h"

using namespace gpupool;

namespace {

// Cuts and joins stretches of a tape at random, many short or few long ones.
void compare_with_reference(unsigned seed, Granules span, Granules longest, unsigned operations) {
  Segments segments(span);
  std::map<Granules, Granules> reference{{0, 0}};  // begin: a number that stands for what the segment holds
  segments.insert(0)->content = 0;
  std::mt19937 random(seed);
  for (unsigned i = 1; i <= operations; ++i) {
    const bool grow = (i / 4000) % 2 == 0;
    const auto begin = static_cast<Granules>(1 + random() % 64 * (span / 64) + random() % longest);
    const auto found = reference.find(begin);
    if (found == reference.end() && grow) {
      reference[begin] = i;
      segments.insert(begin)->content = i;
    } else if (found != reference.end() && !grow) {
      const auto right = std::next(found);
      segments.erase(segments.find(begin), std::prev(found)->first,
                     right == reference.end() ? Segment::kNowhere : right->first);
      reference.erase(found);
    }
    const auto place = static_cast<Granules>(random() % span);
    const auto covering = std::prev(reference.upper_bound(place));
    REQUIRE(segments.floor(place)->begin == covering->first);
    REQUIRE(segments.find(covering->first)->content == covering->second);
    REQUIRE((segments.find(place) != nullptr) == (covering->first == place));
    if (i % 1000 == 0) REQUIRE(segments.validate() == nullptr);
  }
  REQUIRE(segments.count() == reference.size());
}

}  // namespace

TEST_CASE("segments are found by their beginning and by what they cover") {
  compare_with_reference(1, 1u << 12, 64, 20000);
  compare_with_reference(2, 1u << 20, 1u << 14, 60000);
  compare_with_reference(3, (1u << 31) - 2, 1u << 24, 60000);
}

TEST_CASE("bit_tree finds the greatest member not above a number") {
  for (std::uint64_t span : {std::uint64_t{1}, std::uint64_t{64}, std::uint64_t{65}, std::uint64_t{300000}}) {
    BitTree tree(span);
    std::set<std::uint64_t> reference;
    std::mt19937_64 random(span);
    for (unsigned i = 0; i < 20000; ++i) {
      const std::uint64_t number = random() % span;
      if (random() % 3 == 0) {
        tree.insert(number);
        reference.insert(number);
      } else {
        tree.erase(number);
        reference.erase(number);
      }
      const std::uint64_t asked = random() % span;
      const auto above = reference.upper_bound(asked);
      REQUIRE(tree.at_most(asked) == (above == reference.begin() ? BitTree::kNone : *std::prev(above)));
      REQUIRE(tree.contains(asked) == reference.contains(asked));
    }
  }
}
