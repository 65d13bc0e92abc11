// Host time of a free and an allocation, in pairs: a block chosen at random is given back and another of random size
// (0.5-100 kB) is taken, with a given number of live blocks. Not in the time: finding the program's own note of the
// block, reading the clock (measured by itself and taken off), and the first third of a second and more, in which
// clocks and caches warm up and a pool may go on to reserve what it reserves. Each thread has blocks and a stream of
// its own, and plays from before the first thread's timed part to the end of the last one's. What hands out the memory
// is the program's: a Memory made for the thread's stream, with void* take(std::size_t bytes), null when there is
// none, and void give(void*, std::size_t bytes). Programs: pairs.cpp, and those of peers/.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace gpu_pairs {

inline void must(bool succeeded, const char* what) {
  if (succeeded) return;
  std::printf("%s failed\n", what);
  std::exit(1);
}

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kWarmUp{300};   // at least, and at least a quarter of the timed pairs
constexpr std::chrono::milliseconds kCounted{100};  // at least, and at least the timed pairs: for pairs per second
constexpr int kBetweenLooks = 16;                   // pairs from one look at the clock to the next

template <class Memory>
class Worker {
 public:
  Worker(const std::function<Memory(cudaStream_t)>& make, std::size_t live, unsigned seed)
      : random_(seed), memory_(make(new_stream())) {
    while (blocks_.size() < live) blocks_.push_back(take(size()));
  }

  /// Until `pairs` are played and the time is up, not timed.
  void warm_up(std::size_t pairs, std::chrono::milliseconds time) {
    const auto end = Clock::now() + time;
    for (std::size_t i = 0; i < pairs || Clock::now() < end; ++i) pair();
  }
  /// Times `pairs` of them each, and all that there is time for together.
  void play(std::size_t pairs, std::chrono::milliseconds time) {
    nanoseconds_.resize(pairs);
    const auto start = Clock::now();
    for (std::uint32_t& each : nanoseconds_) each = pair();
    std::size_t played = pairs;
    for (; Clock::now() - start < time; played += kBetweenLooks) {
      for (int i = 0; i < kBetweenLooks; ++i) pair();
    }
    pairs_per_second_ = static_cast<double>(played) / std::chrono::duration<double>(Clock::now() - start).count();
  }
  void play_while(const std::atomic<unsigned>& others) {
    while (others.load(std::memory_order_relaxed) > 0) pair();
  }

  const std::vector<std::uint32_t>& nanoseconds() const { return nanoseconds_; }
  double pairs_per_second() const { return pairs_per_second_; }

 private:
  struct Block {
    void* address;
    std::size_t bytes;
  };

  static cudaStream_t new_stream() {
    cudaStream_t stream = nullptr;
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess, "cudaStreamCreate");
    return stream;
  }
  std::uint32_t pair() {
    const std::size_t chosen = random_() % blocks_.size();
    Block block = blocks_[chosen];
    const std::size_t bytes = size();
    asm volatile("" : "+r"(block.address), "+r"(block.bytes));  // has been read
    const auto start = Clock::now();
    memory_.give(block.address, block.bytes);
    block = take(bytes);
    const auto end = Clock::now();
    blocks_[chosen] = block;
    return static_cast<std::uint32_t>((end - start).count());
  }
  std::size_t size() { return 512 + random_() % (100'000 - 512); }
  Block take(std::size_t bytes) {
    void* address = memory_.take(bytes);
    must(address != nullptr, "an allocation");
    return {address, bytes};
  }

  std::mt19937 random_;
  Memory memory_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> nanoseconds_;
  double pairs_per_second_ = 0;
};

/// Two readings of the clock with nothing between them, in the median.
inline std::uint32_t clock_nanoseconds() {
  std::vector<std::uint32_t> readings;
  for (int i = 0; i < 10001; ++i) {
    const auto start = Clock::now();
    readings.push_back(static_cast<std::uint32_t>((Clock::now() - start).count()));
  }
  std::sort(readings.begin(), readings.end());
  return readings[readings.size() / 2];
}

/// Plays with `threads` threads and prints one JSON object: nanoseconds of a pair, and pairs per second in all.
template <class Memory>
void play(std::size_t live, std::size_t pairs, unsigned threads, const std::function<Memory(cudaStream_t)>& make) {
  must(cudaFree(nullptr) == cudaSuccess, "the first call");
  std::vector<std::unique_ptr<Worker<Memory>>> workers(threads);
  std::vector<std::thread> running;
  std::barrier together(static_cast<std::ptrdiff_t>(threads));
  std::atomic<unsigned> timed = threads;  // threads whose timed part has not ended
  for (unsigned thread = 0; thread < threads; ++thread) {
    running.emplace_back([&, thread] {
      workers[thread] = std::make_unique<Worker<Memory>>(make, live, thread + 1);
      together.arrive_and_wait();
      workers[thread]->warm_up(pairs / 4, kWarmUp);
      workers[thread]->play(pairs, kCounted);
      timed.fetch_sub(1, std::memory_order_relaxed);
      workers[thread]->play_while(timed);
    });
  }
  for (std::thread& thread : running) thread.join();
  std::vector<std::uint32_t> all;
  double pairs_per_second = 0;
  for (const auto& worker : workers) {
    all.insert(all.end(), worker->nanoseconds().begin(), worker->nanoseconds().end());
    pairs_per_second += worker->pairs_per_second();
  }
  std::sort(all.begin(), all.end());
  const std::uint32_t clock = clock_nanoseconds();
  std::printf("{\"median_ns\": %u, \"p99_ns\": %u, \"pairs_per_s\": %.0f}\n",
              all[all.size() / 2] - std::min(clock, all[all.size() / 2]),
              all[all.size() * 99 / 100] - std::min(clock, all[all.size() * 99 / 100]), pairs_per_second);
  std::fflush(stdout);
}

/// The words after the program's own: LIVE PAIRS THREADS.
struct Size {
  std::size_t live;
  std::size_t pairs;
  unsigned threads;
  static Size of(char** words) {
    return {std::strtoul(words[0], nullptr, 10), std::strtoul(words[1], nullptr, 10),
            static_cast<unsigned>(std::strtoul(words[2], nullptr, 10))};
  }
};

}  // namespace gpu_pairs
