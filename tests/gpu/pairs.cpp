// Host time of a free and an allocation, in pairs: a block chosen at random is given back and another of random size
// (0.5-100 kB) is taken, with a given number of live blocks. Each thread has blocks and a stream of its own.
//   pairs plain|ordered LIVE PAIRS THREADS    prints one JSON object: nanoseconds of a pair, and pairs per second in
//   all
// `plain` is cudaMalloc and cudaFree, `ordered` cudaMallocAsync and cudaFreeAsync.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace {

void must(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::printf("%s answered %d\n", what, result);
  std::exit(1);
}

using Clock = std::chrono::steady_clock;

enum class Kind { kPlain, kOrdered };

class Worker {
 public:
  Worker(Kind kind, std::size_t live, unsigned seed) : kind_(kind), random_(seed) {
    must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    while (blocks_.size() < live) blocks_.push_back(take());
  }

  void play(std::size_t pairs) {
    nanoseconds_.reserve(pairs);
    began_ = Clock::now();
    for (std::size_t i = 0; i < pairs; ++i) {
      void*& block = blocks_[random_() % blocks_.size()];
      const std::size_t bytes = size();
      const auto start = Clock::now();
      give(block);
      block = take(bytes);
      const auto end = Clock::now();
      nanoseconds_.push_back(static_cast<std::uint32_t>((end - start).count()));
    }
    ended_ = Clock::now();
  }

  const std::vector<std::uint32_t>& nanoseconds() const { return nanoseconds_; }
  Clock::time_point began() const { return began_; }
  Clock::time_point ended() const { return ended_; }

 private:
  std::size_t size() { return 512 + random_() % (100'000 - 512); }
  void* take() { return take(size()); }
  void* take(std::size_t bytes) {
    void* block = nullptr;
    must(kind_ == Kind::kPlain ? cudaMalloc(&block, bytes) : cudaMallocAsync(&block, bytes, stream_), "an allocation");
    return block;
  }
  void give(void* block) { must(kind_ == Kind::kPlain ? cudaFree(block) : cudaFreeAsync(block, stream_), "a free"); }

  Kind kind_;
  std::mt19937 random_;
  cudaStream_t stream_ = nullptr;
  std::vector<void*> blocks_;
  std::vector<std::uint32_t> nanoseconds_;
  Clock::time_point began_;
  Clock::time_point ended_;
};

}  // namespace

int main(int count, char** words) {
  if (count != 5) return 2;
  const Kind kind = std::strcmp(words[1], "plain") == 0 ? Kind::kPlain : Kind::kOrdered;
  const std::size_t live = std::strtoul(words[2], nullptr, 10);
  const std::size_t pairs = std::strtoul(words[3], nullptr, 10);
  const unsigned threads = static_cast<unsigned>(std::atoi(words[4]));
  must(cudaFree(nullptr), "the first call");
  std::vector<std::unique_ptr<Worker>> workers(threads);
  std::vector<std::thread> running;
  std::barrier together(static_cast<std::ptrdiff_t>(threads));
  for (unsigned thread = 0; thread < threads; ++thread) {
    running.emplace_back([&, thread] {
      workers[thread] = std::make_unique<Worker>(kind, live, thread + 1);
      together.arrive_and_wait();
      workers[thread]->play(pairs);
    });
  }
  for (std::thread& thread : running) thread.join();
  std::vector<std::uint32_t> all;
  Clock::time_point began = workers[0]->began();
  Clock::time_point ended = workers[0]->ended();
  for (const auto& worker : workers) {
    all.insert(all.end(), worker->nanoseconds().begin(), worker->nanoseconds().end());
    began = std::min(began, worker->began());
    ended = std::max(ended, worker->ended());
  }
  const std::chrono::duration<double> seconds = ended - began;
  std::ranges::sort(all);
  std::printf("{\"median_ns\": %u, \"p99_ns\": %u, \"pairs_per_s\": %.0f}\n", all[all.size() / 2],
              all[all.size() * 99 / 100], double(all.size()) / seconds.count());
  return 0;
}
