// See search.h.
#include "tests/pool/model/search.h"

#include <algorithm>
#include <random>

namespace gpupool::model {
namespace {

std::uint64_t random_size(std::mt19937_64& random) {
  const auto pick = [&](std::uint64_t n) { return random() % n; };
  switch (pick(6)) {
    case 0:
      return pick(600);
    case 1:
      return pick(40) * 1024;
    case 2:
      return (1 + pick(8)) << 20;
    case 3:
      return (1 + pick(24)) << 20;
    default:
      return 512 * (1 + pick(8)) - 1;
  }
}

Verb random_verb(std::mt19937_64& random) {
  static constexpr unsigned kWeights[] = {
#define GPUPOOL_VERB(name, weight) weight,
      GPUPOOL_MODEL_VERBS(GPUPOOL_VERB)
#undef GPUPOOL_VERB
  };
  unsigned all = 0;
  for (unsigned weight : kWeights) all += weight;
  std::uint64_t at = random() % all;
  unsigned verb = 0;
  while (at >= kWeights[verb]) at -= kWeights[verb++];
  return static_cast<Verb>(verb);
}

bool takes_bytes(Verb verb) {
  return verb != Verb::free && verb != Verb::free_plain && verb != Verb::share && verb != Verb::release &&
         verb != Verb::refuse_memory && verb != Verb::refuse_fence;
}

}  // namespace

Operations random_operations(std::uint64_t seed, std::size_t count, const Scene& scene) {
  std::mt19937_64 random(seed);
  Operations operations;
  operations.reserve(count);
  while (operations.size() < count) {
    const Verb verb = random_verb(random);
    if (!scene.refusals && (verb == Verb::refuse_memory || verb == Verb::refuse_fence)) continue;
    operations.push_back(
        {verb, static_cast<std::uint32_t>(random() % 8), takes_bytes(verb) ? random_size(random) : random() % 64});
  }
  return operations;
}

std::optional<Failure> play(const Scene& scene, const Operations& operations, Sabotage sabotage) {
  World world(scene, sabotage);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    try {
      world.step(operations[i]);
    } catch (const Violation& violation) {
      return Failure{violation.what(), Operations(operations.begin(), operations.begin() + static_cast<long>(i) + 1)};
    }
  }
  return std::nullopt;
}

Failure shrink(const Scene& scene, Failure failure, Sabotage sabotage) {
  const auto still_fails = [&](const Operations& shorter) {
    std::optional<Failure> found = play(scene, shorter, sabotage);
    if (!found) return false;
    failure = std::move(*found);
    return true;
  };
  bool helped = true;
  while (helped) {
    helped = false;
    for (std::size_t piece = std::max<std::size_t>(failure.operations.size() / 2, 1); piece > 0; piece /= 2) {
      for (std::size_t begin = 0; begin + piece <= failure.operations.size();) {
        Operations shorter = failure.operations;
        shorter.erase(shorter.begin() + static_cast<long>(begin), shorter.begin() + static_cast<long>(begin + piece));
        if (still_fails(shorter))
          helped = true;
        else
          begin += piece;
      }
    }
    for (std::size_t i = 0; i < failure.operations.size(); ++i) {
      for (std::uint64_t size : {std::uint64_t{0}, std::uint64_t{511}, failure.operations[i].size / 2}) {
        if (i >= failure.operations.size() || size >= failure.operations[i].size) continue;
        Operations smaller = failure.operations;
        smaller[i].size = size;
        helped |= still_fails(smaller);
      }
    }
  }
  return failure;
}

std::optional<Failure> every_list(const Scene& scene, const Operations& alphabet, unsigned length,
                                  std::uint64_t& played, Sabotage sabotage) {
  Operations list;
  std::optional<Failure> failure;
  // Depth first. A tape cannot be copied, so each list is played from its beginning.
  std::function<void()> extend = [&] {
    for (const Operation& next : alphabet) {
      list.push_back(next);
      World world(scene, sabotage);
      bool did = true;
      try {
        for (const Operation& operation : list) did = world.step(operation);
      } catch (const Violation& violation) {
        failure = Failure{violation.what(), list};
        return;
      }
      ++played;
      if (did && list.size() < length) extend();
      if (failure) return;
      list.pop_back();
    }
  };
  extend();
  return failure;
}

const Scene& small_scene() {
  static const Scene kScene = [] {
    Scene scene{.name = "small"};
    scene.options.address_space = 8 * 1024;
    scene.options.exact_growth = true;
    scene.options.host_wait_ms = 0;
    scene.card = {.granularity = 1024, .card_bytes = 1024};
    scene.fence.host_wait_helps = false;
    scene.streams = 2;
    return scene;
  }();
  return kScene;
}

const Operations& small_alphabet() {
  static const Operations kAlphabet = {
      {Verb::allocate, 0, 511},    {Verb::allocate, 1, 511},   {Verb::allocate_plain, 0, 511},
      {Verb::allocate, 0, 1023},   {Verb::allocate, 1, 1023},  {Verb::allocate_plain, 0, 1023},
      {Verb::free, 0, 0},          {Verb::free, 1, 0},         {Verb::free_plain, 0, 0},
      {Verb::free, 0, 1},          {Verb::free, 1, 1},         {Verb::submit, 0, 0},
      {Verb::submit, 1, 0},        {Verb::complete, 0, 0},     {Verb::complete, 1, 0},
      {Verb::begin_capture, 0, 0}, {Verb::end_captures, 0, 0}, {Verb::end_stream, 0, 0},
      {Verb::trim, 0, 0},
  };
  return kAlphabet;
}

}  // namespace gpupool::model
