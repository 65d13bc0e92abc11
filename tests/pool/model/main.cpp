// gpupool_model: the model for as long as wanted.
//   gpupool_model [--operations N] [--seconds S] [--seed N]    random lists on every scene in turn
//   gpupool_model --every LENGTH                               every list of that length on the small scene
// Last line: model: operations N, violations N. Exit status 1 if a promise was broken; the list is printed shrunk.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/pool/model/search.h"

using namespace gpupool::model;

namespace {

// Most faults need few blocks, and a short list is checked faster; some need many.
constexpr std::size_t kLengths[] = {100, 200, 100, 400, 100, 200, 1000};

int end(std::uint64_t operations, const Scene& scene, std::optional<Failure> failure) {
  if (failure) {
    const Failure shrunk = shrink(scene, *failure);
    std::printf("broken: %s\n%s\n", shrunk.promise.c_str(), as_code(scene, shrunk.operations).c_str());
  }
  std::printf("model: operations %llu, violations %d\n", static_cast<unsigned long long>(operations), failure ? 1 : 0);
  return failure ? 1 : 0;
}

int play_at_random(std::uint64_t operations, double seconds, std::uint64_t seed) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  std::uint64_t done = 0;
  for (; done < operations && std::chrono::duration<double>(Clock::now() - begin).count() < seconds; ++seed) {
    const Scene& scene = scenes()[seed % scenes().size()];
    const Operations list = random_operations(seed, kLengths[seed % std::size(kLengths)], scene);
    std::optional<Failure> failure = play(scene, list);
    done += list.size();
    if (failure) return end(done, scene, std::move(failure));
  }
  return end(done, scenes().front(), std::nullopt);
}

}  // namespace

int main(int count, char** words) {
  std::uint64_t operations = 1'000'000;
  double seconds = 1e9;
  std::uint64_t seed = 1;
  for (int i = 1; i + 1 < count; i += 2) {
    if (std::strcmp(words[i], "--operations") == 0)
      operations = std::strtoull(words[i + 1], nullptr, 10);
    else if (std::strcmp(words[i], "--seconds") == 0)
      seconds = std::strtod(words[i + 1], nullptr), operations = ~std::uint64_t{0};
    else if (std::strcmp(words[i], "--seed") == 0)
      seed = std::strtoull(words[i + 1], nullptr, 10);
    else if (std::strcmp(words[i], "--every") == 0) {
      std::uint64_t played = 0;
      const auto length = static_cast<unsigned>(std::atoi(words[i + 1]));
      std::optional<Failure> failure = every_list(small_scene(), small_alphabet(), length, played);
      return end(played, small_scene(), std::move(failure));
    }
  }
  return play_at_random(operations, seconds, seed);
}
