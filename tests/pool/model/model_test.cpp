// A few seconds of the model, the lists that once failed, and faults planted in the fence that it has to find.
#include "tests/catch.h"
#include "tests/pool/model/search.h"

using namespace gpupool::model;

namespace {

void expect_none(const Scene& scene, const std::optional<Failure>& failure) {
  if (!failure) return;
  const Failure shrunk = shrink(scene, *failure);
  INFO(shrunk.promise << "\n" << as_code(scene, shrunk.operations));
  REQUIRE(!failure);
}

const Scene& scene_named(const std::string& name) {
  if (name == small_scene().name) return small_scene();
  for (const Scene& scene : scenes()) {
    if (scene.name == name) return scene;
  }
  throw std::runtime_error("no scene is called " + name);
}

// The form in which a failing list is pasted here.
void holds(const std::string& scene, const Operations& operations) {
  expect_none(scene_named(scene), play(scene_named(scene), operations));
}

}  // namespace

TEST_CASE("model: random lists keep every promise on every scene") {
  for (std::uint64_t seed = 1; seed <= 3 * scenes().size(); ++seed) {
    const Scene& scene = scenes()[seed % scenes().size()];
    expect_none(scene, play(scene, random_operations(seed, 1000, scene)));
  }
}

TEST_CASE("model: every short list keeps every promise") {
  std::uint64_t played = 0;
  expect_none(small_scene(), every_list(small_scene(), small_alphabet(), 4, played));
  CHECK(played > 10'000);
}

TEST_CASE("model: a fence that lies is found, and the list that shows it is short") {
  for (Sabotage sabotage :
       {Sabotage::kWaitSkipped, Sabotage::kRecordLost, Sabotage::kContextForStream, Sabotage::kDoneTooEarly}) {
    std::optional<Failure> failure;
    const Scene& scene = scenes().front();
    for (std::uint64_t seed = 1; !failure && seed < 50; ++seed)
      failure = play(scene, random_operations(seed, 1000, scene), sabotage);
    INFO("sabotage " << static_cast<int>(sabotage));
    REQUIRE(failure);
    const Failure shrunk = shrink(scene, *failure, sabotage);
    INFO(as_code(scene, shrunk.operations));
    CHECK(shrunk.operations.size() <= 8);
  }
}

TEST_CASE("model: lists that once failed") {
  holds("small", {{Verb::allocate, 0, 511}, {Verb::free, 0, 0}, {Verb::allocate, 1, 511}});
}
