// A CUDA program that distrusts its memory: every block is filled with a pattern of its own by a kernel, and checked by
// a kernel before it is freed. What any user could have written: the driver API alone, so that the same program runs
// natively, under the preload, on the simulated driver and on a card. A correct program: whatever touches a block is
// ordered behind its allocation and before its free, and nothing more.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <string>
#include <vector>

namespace torture {

struct Options {
  std::string image = "any";  // of the kernels of tests/gpu/kernels.cu; the simulated driver has them built in
  std::uint64_t seed = 1;
  std::uint64_t operations = 2000;  // of each thread
  double seconds = 1e9;             // or until then, whichever is first
  unsigned threads = 4;
  unsigned streams = 3;  // of each thread, beside the default ones
  unsigned devices = 1;
  std::uint64_t largest = std::uint64_t{1} << 20;  // bytes of a block
  std::uint64_t live = std::uint64_t{64} << 20;    // bytes of all blocks of a thread
  bool tolerate = false;                           // calls may fail, as when faults are planted
  bool forks = false;                              // children that end by _exit
  bool forked_exits = false;                       // and some by exit(), through everybody's destructors
  std::uint64_t backlog = ~0ull;  // launches of a thread before it waits for its streams; a card is not that fast
  bool leave = false;             // exit() after half the time, while the threads are at work
};

struct Counts {
  std::atomic<std::uint64_t> operations{0};
  std::atomic<std::uint64_t> refused{0};  // requests that were out of memory, or failed where that is tolerated
  std::atomic<std::uint64_t> errors{0};   // calls that failed and should not have
};

struct Stream {
  CUstream handle = nullptr;
  CUdeviceptr wrong = 0;  // where kernels on it count wrong bytes: one place for each stream, so that no two meet there
  bool own = false;       // made here, and may be destroyed
  bool blocking = true;   // ordered with the legacy stream, which may not be touched while such a stream captures
};

struct Block {
  CUdeviceptr address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t seed = 0;
  bool plain = false;  // of cuMemAlloc
};

/// A block on its way to another thread: ready once `event` is.
struct Parcel {
  Block block;
  CUevent event = nullptr;
};

/// A launch's grid, enough for a card; the simulated driver does not mind.
constexpr unsigned kGrid = 512;
constexpr unsigned kThreadsOfABlock = 256;

/// One card: its context, kernels and the blocks that change hands.
struct Card {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUfunction fill = nullptr;
  CUfunction check = nullptr;
  CUfunction spin = nullptr;
  std::mutex mutex;
  std::vector<Parcel> parcels;  // under the mutex
  std::shared_mutex captures;   // shared by open captures; whoever waits for the whole context has it alone
};

/// Wrong bytes counted on all streams, after all work is done. In pinned host memory.
class Counters {
 public:
  static constexpr unsigned kSlots = 1u << 14;
  CUresult open();
  CUdeviceptr slot() { return at_ + 4 * (next_.fetch_add(1) % kSlots); }
  std::uint64_t wrong() const;

 private:
  std::uint32_t* host_ = nullptr;
  CUdeviceptr at_ = 0;
  std::atomic<unsigned> next_{0};
};

/// No process stays for ever, whoever started it: SIGALRM ends a child after so many seconds, and the program so many
/// after the time it was given.
constexpr unsigned kLastSeconds = 300;

/// To be called before exit() while others are at work. The C library holds a lock in exit(); a child forked meanwhile
/// has it too, with nobody to open it, so from now on children end by _exit alone.
void begin_exit();

/// One thread of the program, with streams and blocks of its own.
class Worker {
 public:
  Worker(const Options& options, unsigned number, Card& card, Counters& counters, Counts& counts);
  void run();

 private:
  struct Held {
    Block block;
    std::size_t stream;  // the one that touches it
  };

  void step();
  void allocate();
  void release(std::size_t index);
  void check(std::size_t index);
  void refill(std::size_t index);
  void move(std::size_t index, std::size_t to);
  void send(std::size_t index);
  void receive();
  void capture();
  void renew_stream();
  void ask(std::size_t index);
  void trim();
  void catch_up();
  void fork_child();

  bool ok(CUresult result, const char* what);
  bool order(std::size_t before, std::size_t after);
  void add_stream(unsigned flags);
  void launch(CUfunction kernel, std::size_t stream, void** parameters);
  void fill(const Block& block, std::size_t stream);
  void verify(const Block& block, std::size_t stream);
  void forget(std::size_t index);
  std::uint64_t random_bytes();
  unsigned pick(unsigned n) { return static_cast<unsigned>(random_() % n); }
  std::size_t pick_block() { return pick(static_cast<unsigned>(held_.size())); }
  std::size_t pick_stream() { return pick(static_cast<unsigned>(streams_.size())); }

  const Options& options_;
  Card& card_;
  Counters& counters_;
  Counts& counts_;
  std::mt19937_64 random_;
  std::vector<Stream> streams_;
  std::vector<Held> held_;
  std::uint64_t live_ = 0;
  std::uint32_t next_seed_;
  std::uint64_t launches_ = 0;  // since the last wait for all streams
  bool lost_ = false;           // the context, or what orders it: nothing more can be said
};

}  // namespace torture
