// gpupool_model: the model for as long as wanted.
//   gpupool_model [--operations N] [--seconds S] [--seed N] [--processes N]    random lists on every scene in turn
//   gpupool_model --every LENGTH                                               every list of that length on the small
//   scene
// Each list is a world of its own, so processes share nothing but the number of the next one; the same seed is the same
// list. More processes than processors pay, because scenes in which a request waits on the host sleep a moment.
// Last line: model: operations N, violations N. Exit status 1 if a promise was broken; the list is printed shrunk.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "tests/pool/model/search.h"

using namespace gpupool::model;

namespace {

// Most faults need few blocks, and a short list is checked faster; some need many.
constexpr std::size_t kLengths[] = {100, 200, 100, 400, 100, 200, 1000};

struct Budget {
  std::uint64_t operations = 1'000'000;
  double seconds = 1e9;
  std::uint64_t seed = 1;
  unsigned processes = 1;
};

// What the processes share.
struct Progress {
  std::atomic<std::uint64_t> next;
  std::atomic<std::uint64_t> operations{0};
  std::atomic<unsigned> violations{0};
};

void show(const Scene& scene, Failure failure) {
  const Failure shrunk = shrink(scene, std::move(failure));
  std::printf("broken: %s\n%s\n", shrunk.promise.c_str(), as_code(scene, shrunk.operations).c_str());
  std::fflush(stdout);
}

int end(std::uint64_t operations, unsigned violations) {
  std::printf("model: operations %llu, violations %u\n", static_cast<unsigned long long>(operations), violations);
  return violations != 0 ? 1 : 0;
}

void play_on(const Budget& budget, Progress& progress) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  while (progress.violations == 0 && progress.operations < budget.operations &&
         std::chrono::duration<double>(Clock::now() - begin).count() < budget.seconds) {
    const std::uint64_t seed = progress.next++;
    const Scene& scene = scenes()[seed % scenes().size()];
    const Operations list = random_operations(seed, kLengths[seed % std::size(kLengths)], scene);
    std::optional<Failure> failure = play(scene, list);
    progress.operations += list.size();
    if (!failure) continue;
    ++progress.violations;
    show(scene, std::move(*failure));
  }
}

int play_at_random(const Budget& budget) {
  void* shared = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 2;
  Progress& progress = *new (shared) Progress{.next = budget.seed};
  unsigned children = 0;
  for (; children + 1 < budget.processes; ++children) {
    const pid_t child = fork();
    if (child < 0) break;
    if (child == 0) {
      play_on(budget, progress);
      _exit(0);
    }
  }
  play_on(budget, progress);
  for (; children != 0; --children) {
    int status = 0;
    wait(&status);
    if (status != 0) ++progress.violations;  // it crashed
  }
  return end(progress.operations, progress.violations);
}

int play_every(unsigned length) {
  std::uint64_t played = 0;
  std::optional<Failure> failure = every_list(small_scene(), small_alphabet(), length, played);
  const unsigned violations = failure ? 1 : 0;
  if (failure) show(small_scene(), std::move(*failure));
  return end(played, violations);
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
    else if (word == "--processes")
      budget.processes = static_cast<unsigned>(std::atoi(words[i + 1]));
    else if (word == "--every")
      return play_every(static_cast<unsigned>(std::atoi(words[i + 1])));
  }
  return play_at_random(budget);
}
