// A seeded random program over the driver or the runtime that prints every answer, so that the output with the preload
// can be compared with the output without it: scripts/differential does that, on the simulated driver or a real card.
// Kinds of step are rows of kinds.def, separated by commas; without --only those that a real driver defines, with --all
// every one. When a call does not return for --patience seconds the program ends and names it, as it does in a crash.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/differential/operations.h"
#include "tests/differential/threads.h"

namespace differential {
namespace {

constexpr std::uint64_t kSeedsApart = 1000003;
constexpr std::size_t kMostLive = std::size_t{1} << 30;
constexpr const char* kUsage =
    " [--calls N] [--seed S] [--threads T] [--api driver|runtime] [--cudart PATH]\n"
    "       [--spelling newest|per-thread|oldest] [--at-once]\n"
    "       [--only KINDS] [--skip KINDS] [--all] [--patience SECONDS] | --exceptions | --kinds";

struct Options {
  unsigned long calls = 1000;
  std::uint64_t seed = 1;
  unsigned threads = 1;
  unsigned patience_seconds = 30;
  std::string api = "driver";
  std::string spelling = "newest";
  std::string cudart = "libcudart.so.13";
  std::string only;
  std::string skip;
  bool all = false;
  bool at_once = false;
};

enum class Care : unsigned char { kDefined, kDaring };
enum class Reach : unsigned char { kOwn, kShared };

struct Step {
  const char* name;
  unsigned weight;
  Care care;
  Reach reach;
  void (*play)(World&);
};

constexpr Step kSteps[] = {
#define KIND(name, weight, care, reach) {#name, weight, Care::care, Reach::reach, name},
#include "tests/differential/kinds.def"
#undef KIND
};

bool is_in(const std::string& list, const std::string& name) {
  return ("," + list + ",").find("," + name + ",") != std::string::npos;
}

std::vector<Step> chosen(const Options& options) {
  std::vector<Step> steps;
  for (const Step& step : kSteps) {
    const bool asked =
        options.only.empty() ? options.all || step.care == Care::kDefined : is_in(options.only, step.name);
    if (options.at_once && step.reach == Reach::kShared) continue;
    if (asked && !is_in(options.skip, step.name)) steps.push_back(step);
  }
  return steps;
}

const Step& any_of(World& world, const std::vector<Step>& steps) {
  std::uint64_t sum = 0;
  for (const Step& step : steps) sum += step.weight;
  std::uint64_t choice = world.below(sum);
  for (const Step& step : steps) {
    if (choice < step.weight) return step;
    choice -= step.weight;
  }
  return steps.back();
}

void start_all(World& world, Threads& threads) {
  for (unsigned thread = 0; thread < threads.count(); ++thread) {
    threads.run(thread, [&] { world.say("thread starts", world.api().start()); });
  }
  world.others_must_start = false;
}

void look_around(World& world, unsigned worlds) {
  std::size_t free = 0;
  std::size_t total = 0;
  world.say("free memory", world.api().info(&free, &total), std::to_string(total));
  world.budget_bytes = std::min(total / 4, kMostLive) / worlds;
  driver().cuCtxGetCurrent_(&world.primary);
  meet_default_pool(world);
}

void tidy(World& world) {
  while (!world.blocks.empty()) {
    const CUdeviceptr address = world.blocks.back().address;
    world.forget(world.blocks.back());
    world.say("free at the end", world.api().free(address));
  }
  world.say("wait for all", driver().cuCtxSynchronize_());
}

std::unique_ptr<Api> make_api(const Options& options) {
  return options.api == "driver" ? driver_api() : runtime_api(options.cudart);
}

void play(World& world, Threads& threads, const std::vector<Step>& steps, unsigned long calls) {
  start_all(world, threads);
  threads.run(0, [&] { look_around(world, 1); });
  while (world.lines() < calls) {
    const auto thread = static_cast<unsigned>(world.below(threads.count()));
    threads.run(thread, [&] {
      const Step& step = any_of(world, steps);
      note_step(step.name);
      step.play(world);
    });
    if (world.others_must_start) start_all(world, threads);
  }
  note_step("end");
  threads.run(0, [&] { tidy(world); });
}

// Each thread with a world of its own, none waiting for another.
void play_at_once(const Options& options, const std::vector<Step>& steps) {
  std::vector<std::thread> threads;
  for (unsigned mine = 0; mine < options.threads; ++mine) {
    threads.emplace_back([&options, &steps, mine] {
      World world(make_api(options), options.seed + mine * kSeedsApart, "thread " + std::to_string(mine) + ": ");
      world.say("starts", world.api().start());
      look_around(world, options.threads);
      while (world.lines() < options.calls) {
        const Step& step = any_of(world, steps);
        note_step(step.name);
        step.play(world);
      }
      tidy(world);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void print_exceptions() {
#define EXCEPTION(what, why) std::printf("%s: %s\n", #what, why);
#include "tests/differential/exceptions.def"
#undef EXCEPTION
}

void print_kinds() {
  for (const Step& step : kSteps)
    std::printf("%s %u %s\n", step.name, step.weight, step.care == Care::kDefined ? "defined" : "daring");
}

bool parse(int count, char** words, Options& options) {
  const auto number = [](const std::string& text) { return static_cast<unsigned>(std::stoul(text)); };
  for (int i = 1; i < count; ++i) {
    const std::string name = words[i];
    if (name == "--all" || name == "--at-once") {
      (name == "--all" ? options.all : options.at_once) = true;
      continue;
    }
    if (++i == count) return false;
    const std::string value = words[i];
    if (name == "--calls") {
      options.calls = number(value);
    } else if (name == "--seed") {
      options.seed = std::stoull(value);
    } else if (name == "--threads") {
      options.threads = std::max(1u, number(value));
    } else if (name == "--patience") {
      options.patience_seconds = number(value);
    } else if (name == "--only") {
      options.only = value;
    } else if (name == "--skip") {
      options.skip = value;
    } else if (name == "--api") {
      options.api = value;
    } else if (name == "--spelling") {
      options.spelling = value;
    } else if (name == "--cudart") {
      options.cudart = value;
    } else {
      return false;
    }
  }
  return !chosen(options).empty() && choose_spelling(options.spelling) &&
         (options.api == "driver" || options.api == "runtime");
}

}  // namespace
}  // namespace differential

int main(int count, char** words) {
  using namespace differential;
  if (count == 2 && std::strcmp(words[1], "--exceptions") == 0) return print_exceptions(), 0;
  if (count == 2 && std::strcmp(words[1], "--kinds") == 0) return print_kinds(), 0;
  Options options;
  if (!parse(count, words, options)) {
    std::fprintf(stderr, "usage: %s%s\n", words[0], kUsage);
    return 2;
  }
  watch(options.patience_seconds);
  World world(make_api(options), options.seed);
  world.say("init", driver().cuInit_(0));
  if (options.at_once) return play_at_once(options, chosen(options)), 0;
  Threads threads(options.threads);
  play(world, threads, chosen(options), options.calls);
  return 0;
}
