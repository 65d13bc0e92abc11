// See operations.h.
#include "tests/pool/model/operations.h"

namespace gpupool::model {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

const char* name_of(Verb verb) {
  switch (verb) {
#define GPUPOOL_VERB(name, weight) \
  case Verb::name:                 \
    return #name;
    GPUPOOL_MODEL_VERBS(GPUPOOL_VERB)
#undef GPUPOOL_VERB
  }
  return "";
}

Scene growing() {
  Scene scene{.name = "growing"};
  scene.options.exact_growth = true;
  scene.options.address_space = 4096 * kMiB;
  scene.card.card_bytes = 256 * kMiB;
  scene.options.host_wait_ms = 1;  // what a wait does not bring about comes in no time
  return scene;
}

std::vector<Scene> make_scenes() {
  std::vector<Scene> all{growing()};

  Scene steps = growing();
  steps.name = "steps, a cap and headroom";
  steps.options.exact_growth = false;
  steps.options.growth_bytes = 16 * kMiB;
  steps.options.max = 200 * kMiB;
  steps.options.headroom = 100 * kMiB;
  steps.options.handle = 8 * kMiB;
  all.push_back(steps);

  Scene quiescent = growing();
  quiescent.name = "quiescent";
  quiescent.options.reuse = ReusePolicy::kQuiescent;
  quiescent.card.card_bytes = 128 * kMiB;
  all.push_back(quiescent);

  Scene arena = growing();
  arena.name = "arena";
  arena.options.address_space = 65536 * kMiB;
  arena.card.placement = Placement::kGiven;
  all.push_back(arena);

  Scene reserved = growing();
  reserved.name = "reserved up front";
  reserved.options.exact_growth = false;
  reserved.options.size = 96 * kMiB;
  reserved.options.max_split = 16 * kMiB;
  all.push_back(reserved);

  Scene alone = growing();
  alone.name = "one stream";
  alone.streams = 1;
  all.push_back(alone);

  Scene late = growing();
  late.name = "work that never ends by itself";
  late.fence.host_wait_helps = false;
  late.card.card_bytes = 64 * kMiB;
  all.push_back(late);

  Scene capped = growing();
  capped.name = "a cap";
  capped.options.max = 48 * kMiB;
  all.push_back(capped);

  Scene own = growing();
  own.name = "threads that wait for their own frees";
  own.own_frees = true;
  own.fence.looks_until_done = 1;  // else they would wait for ever: nothing runs by itself
  all.push_back(own);

  Scene sync = growing();
  sync.name = "sync";
  sync.options.reuse = ReusePolicy::kSync;
  all.push_back(sync);

  Scene old_driver = growing();
  old_driver.name = "no context events";
  old_driver.fence.context_events = false;
  all.push_back(old_driver);

  Scene few_events = growing();
  few_events.name = "few events";
  few_events.fence.max_events = 70;
  all.push_back(few_events);

  Scene refusing = growing();
  refusing.name = "a driver that refuses";
  refusing.refusals = true;
  all.push_back(refusing);

  Scene refusing_arena = arena;
  refusing_arena.name = "an arena that refuses";
  refusing_arena.refusals = true;
  all.push_back(refusing_arena);
  return all;
}

}  // namespace

const std::vector<Scene>& scenes() {
  static const std::vector<Scene> kScenes = make_scenes();
  return kScenes;
}

std::string as_code(const Scene& scene, const Operations& operations) {
  std::string code = "  holds(\"" + std::string(scene.name) + "\", {";
  for (const Operation& operation : operations) {
    code += std::string(code.back() == '{' ? "" : ", ") + "{Verb::" + name_of(operation.verb) + ", " +
            std::to_string(operation.who) + ", " + std::to_string(operation.size) + "}";
  }
  return code + "});";
}

}  // namespace gpupool::model
