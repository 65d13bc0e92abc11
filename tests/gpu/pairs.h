// Host time of a free and an allocation, in pairs: a block chosen at random is given back and another of random size
// (0.5-100 kB) is taken, with a given number of live blocks. Not in the time: finding the program's own note of the
// block, reading the clock (measured by itself and taken off), and the first moments of the process: it pauses, in
// which a pool may go on to reserve what it reserves, and plays a while. Each thread has blocks and a stream of its
// own. What hands out the memory is the program's: a Memory made for the thread's stream, with void* take(std::size_t
// bytes), null when there is none, and void give(void*, std::size_t bytes). Programs: pairs.cpp, and those of peers/.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
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
constexpr std::chrono::microseconds kPauseForAPair{25};  // half a second in the runs of scripts/gpu-check

template <class Memory>
class Worker {
 public:
  Worker(const std::function<Memory(cudaStream_t)>& make, std::size_t live, unsigned seed)
      : random_(seed), memory_(make(new_stream())) {
    while (blocks_.size() < live) blocks_.push_back(take(size()));
  }

  void play(std::size_t pairs) {
    nanoseconds_.clear();
    nanoseconds_.reserve(pairs);
    began_ = Clock::now();
    for (std::size_t i = 0; i < pairs; ++i) {
      const std::size_t chosen = random_() % blocks_.size();
      Block block = blocks_[chosen];
      const std::size_t bytes = size();
      asm volatile("" : "+r"(block.address), "+r"(block.bytes));  // has been read
      const auto start = Clock::now();
      memory_.give(block.address, block.bytes);
      block = take(bytes);
      const auto end = Clock::now();
      blocks_[chosen] = block;
      nanoseconds_.push_back(static_cast<std::uint32_t>((end - start).count()));
    }
    ended_ = Clock::now();
  }

  const std::vector<std::uint32_t>& nanoseconds() const { return nanoseconds_; }
  Clock::time_point began() const { return began_; }
  Clock::time_point ended() const { return ended_; }

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
  Clock::time_point began_;
  Clock::time_point ended_;
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
  for (unsigned thread = 0; thread < threads; ++thread) {
    running.emplace_back([&, thread] {
      workers[thread] = std::make_unique<Worker<Memory>>(make, live, thread + 1);
      std::this_thread::sleep_for(pairs * kPauseForAPair);
      together.arrive_and_wait();
      workers[thread]->play(pairs / 4);
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
  std::sort(all.begin(), all.end());
  const std::uint32_t clock = clock_nanoseconds();
  std::printf("{\"median_ns\": %u, \"p99_ns\": %u, \"pairs_per_s\": %.0f}\n",
              all[all.size() / 2] - std::min(clock, all[all.size() / 2]),
              all[all.size() * 99 / 100] - std::min(clock, all[all.size() * 99 / 100]),
              double(all.size()) / seconds.count());
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
