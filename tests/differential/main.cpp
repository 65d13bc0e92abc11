// A seeded random program over the driver or the runtime that prints every answer, so that the output with the preload
// can be compared with the output without it: scripts/differential does that, on the simulated driver or a real card.
//   differential [--calls N] [--seed S] [--threads T] [--api driver|runtime] [--cudart PATH] [--exceptions]
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "tests/differential/operations.h"
#include "tests/differential/threads.h"

namespace differential {
namespace {

constexpr std::size_t kMostLive = std::size_t{1} << 30;

struct Options {
  unsigned long calls = 1000;
  std::uint64_t seed = 1;
  unsigned threads = 1;
  std::string api = "driver";
  std::string cudart = "libcudart.so.13";
};

struct Weighted {
  unsigned weight;
  void (*operation)(World&);
};

constexpr Weighted kOperations[] = {
    {20, allocate},       {6, allocate_rows},   {20, allocate_ordered}, {3, allocate_oddly}, {2, allocate_elsewhere},
    {40, free_block},     {4, free_wrongly},    {30, use_contents},     {8, ask_range},      {12, ask_attributes},
    {4, ask_free_memory}, {3, ask_for_handles}, {5, change_streams},    {8, synchronize},    {4, capture},
    {5, change_pools},    {8, ask_pools},
};

// Steps between them, about.
constexpr std::uint64_t kBetweenContexts = 150;
constexpr std::uint64_t kBetweenLoneThreads = 100;
constexpr std::uint64_t kBetweenResets = 700;

void step(World& world) {
  if (world.one_in(kBetweenContexts)) return use_second_context(world);
  if (world.one_in(kBetweenLoneThreads)) return act_without_context(world);
  if (world.one_in(kBetweenResets)) return reset_device(world);
  unsigned sum = 0;
  for (const Weighted& each : kOperations) sum += each.weight;
  std::uint64_t choice = world.below(sum);
  for (const Weighted& each : kOperations) {
    if (choice < each.weight) return each.operation(world);
    choice -= each.weight;
  }
}

void start_all(World& world, Threads& threads) {
  for (unsigned thread = 0; thread < threads.count(); ++thread) {
    threads.run(thread, [&] { world.say("thread starts", world.api().start()); });
  }
  world.others_must_start = false;
}

void play(World& world, Threads& threads, unsigned long calls) {
  start_all(world, threads);
  threads.run(0, [&] {
    std::size_t free = 0;
    std::size_t total = 0;
    world.say("free memory", world.api().info(&free, &total), std::to_string(total));
    world.budget_bytes = std::min(total / 4, kMostLive);
    driver().cuCtxGetCurrent_(&world.primary);
    meet_default_pool(world);
  });
  while (world.lines() < calls) {
    const auto thread = static_cast<unsigned>(world.below(threads.count()));
    threads.run(thread, [&] { step(world); });
    if (world.others_must_start) start_all(world, threads);
  }
  threads.run(0, [&] {
    while (!world.blocks.empty()) {
      const CUdeviceptr address = world.blocks.back().address;
      world.forget(world.blocks.back());
      world.say("free at the end", world.api().free(address));
    }
    world.say("wait for all", driver().cuCtxSynchronize_());
  });
}

void print_exceptions() {
#define EXCEPTION(what, why) std::printf("%s: %s\n", #what, why);
#include "tests/differential/exceptions.def"
#undef EXCEPTION
}

bool parse(int count, char** words, Options& options) {
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = words[i];
    const std::string value = words[i + 1];
    if (name == "--calls") {
      options.calls = std::stoul(value);
    } else if (name == "--seed") {
      options.seed = std::stoull(value);
    } else if (name == "--threads") {
      options.threads = std::max(1u, static_cast<unsigned>(std::stoul(value)));
    } else if (name == "--api") {
      options.api = value;
    } else if (name == "--cudart") {
      options.cudart = value;
    } else {
      return false;
    }
  }
  return count % 2 == 1 && (options.api == "driver" || options.api == "runtime");
}

}  // namespace
}  // namespace differential

int main(int count, char** words) {
  using namespace differential;
  if (count == 2 && std::strcmp(words[1], "--exceptions") == 0) return print_exceptions(), 0;
  Options options;
  if (!parse(count, words, options)) {
    std::fprintf(
        stderr,
        "usage: %s [--calls N] [--seed S] [--threads T] [--api driver|runtime] [--cudart PATH] | --exceptions\n",
        words[0]);
    return 2;
  }
  World world(options.api == "driver" ? driver_api() : runtime_api(options.cudart), options.seed);
  world.say("init", driver().cuInit_(0));
  Threads threads(options.threads);
  play(world, threads, options.calls);
  return 0;
}
