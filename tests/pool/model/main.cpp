// gpupool_model: the model for as long as wanted.
//   gpupool_model [--operations N] [--seconds S] [--seed N] [--threads N]    random lists on every scene in turn
//   gpupool_model --every LENGTH                                             every list of that length on the small
//   scene
// Each list is a world of its own, so threads share nothing but the number of the next one; the same seed is the same
// list. More threads than processors pay, because scenes in which a request waits on the host sleep a moment.
// Last line: model: operations N, violations N. Exit status 1 if a promise was broken; the list is printed shrunk.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "tests/pool/model/search.h"

using namespace gpupool::model;

namespace {

// Most faults need few blocks, and a short list is checked faster; some need many.
constexpr std::size_t kLengths[] = {100, 200, 100, 400, 100, 200, 1000};

struct Budget {
  std::uint64_t operations = 1'000'000;
  double seconds = 1e9;
  std::uint64_t seed = 1;
  unsigned threads = 1;
};

struct Broken {
  const Scene* scene;
  Failure failure;
};

int end(std::uint64_t operations, const std::optional<Broken>& broken) {
  if (broken) {
    const Failure shrunk = shrink(*broken->scene, broken->failure);
    std::printf("broken: %s\n%s\n", shrunk.promise.c_str(), as_code(*broken->scene, shrunk.operations).c_str());
  }
  std::printf("model: operations %llu, violations %d\n", static_cast<unsigned long long>(operations), broken ? 1 : 0);
  return broken ? 1 : 0;
}

int play_at_random(const Budget& budget) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  std::atomic<std::uint64_t> next{budget.seed};
  std::atomic<std::uint64_t> done{0};
  std::mutex mutex;
  std::optional<Broken> broken;  // under the mutex
  std::atomic<bool> over{false};
  const auto play_on = [&] {
    while (!over && done < budget.operations &&
           std::chrono::duration<double>(Clock::now() - begin).count() < budget.seconds) {
      const std::uint64_t seed = next++;
      const Scene& scene = scenes()[seed % scenes().size()];
      const Operations list = random_operations(seed, kLengths[seed % std::size(kLengths)], scene);
      std::optional<Failure> failure = play(scene, list);
      done += list.size();
      if (!failure) continue;
      over = true;
      const std::lock_guard lock(mutex);
      broken = Broken{&scene, std::move(*failure)};
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < budget.threads; ++i) threads.emplace_back(play_on);
  play_on();
  for (std::thread& thread : threads) thread.join();
  return end(done, broken);
}

int play_every(unsigned length) {
  std::uint64_t played = 0;
  std::optional<Failure> failure = every_list(small_scene(), small_alphabet(), length, played);
  if (!failure) return end(played, std::nullopt);
  return end(played, Broken{&small_scene(), std::move(*failure)});
}

}  // namespace

int main(int count, char** words) {
  Budget budget;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string word = words[i];
    if (word == "--operations")
      budget.operations = std::strtoull(words[i + 1], nullptr, 10);
    else if (word == "--seconds")
      budget.seconds = std::strtod(words[i + 1], nullptr), budget.operations = ~std::uint64_t{0};
    else if (word == "--seed")
      budget.seed = std::strtoull(words[i + 1], nullptr, 10);
    else if (word == "--threads")
      budget.threads = static_cast<unsigned>(std::atoi(words[i + 1]));
    else if (word == "--every")
      return play_every(static_cast<unsigned>(std::atoi(words[i + 1])));
  }
  return play_at_random(budget);
}
