// What the random program has made and not yet given back, and the line that each call prints. Owned by main, or by its
// one thread with --at-once; else only one thread acts at a time (threads.h), so nothing here is locked. Addresses
// never reach the output: a block is "b" and its number, in the order of allocation. All choices come from the seed and
// from what the program itself did, never from an address or a time, so that two runs differ only where the driver's
// answers do.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/differential/api.h"

namespace differential {

enum class Kind : unsigned char { kPlain, kOrdered, kManaged };

constexpr int kNoPool = -1;

struct Block {
  unsigned number = 0;
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  Kind kind = Kind::kPlain;
  int pool = kNoPool;         // its number; a handle may name another pool later
  unsigned char content = 0;  // of every byte, once written
  bool written = false;
  CUevent last = nullptr;  // recorded behind the last work on it
  unsigned long long buffer_id = 0;
};

struct Pool {
  CUmemoryPool handle = nullptr;
  int number = 0;
  bool used_is_exact = true;  // see exceptions.def
};

/// A row of exceptions.def.
enum class Exception : unsigned char {
#define EXCEPTION(what, why) what,
#include "tests/differential/exceptions.def"
#undef EXCEPTION
};

class World {
 public:
  /// `prefix` stands before each line.
  World(std::unique_ptr<Api> api, std::uint64_t seed, std::string prefix = "")
      : api_(std::move(api)), random_(seed), prefix_(std::move(prefix)) {}

  Api& api() { return *api_; }
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

  /// One line of the output: a call by its text and its result, then what it answered.
  void say(const std::string& call, int result, const std::string& answer = "");
  unsigned long lines() const { return lines_; }
  /// `value`, or what stands for a value that may differ.
  static std::string unless(Exception excused, const std::string& value);

  /// Enters a fresh allocation, writes it on `stream` and checks its alignment. Returns its answer text.
  std::string enter(CUdeviceptr address, std::size_t bytes, Kind kind, int pool, CUstream stream);
  Block* any_block();
  /// Work of `stream` on the block from here on comes behind the work before.
  void before(Block& block, CUstream stream);
  void after(Block& block, CUstream stream);
  void write(Block& block, CUstream stream);
  void forget(Block& block);
  /// All blocks, streams and pools are gone with the context; events too.
  void forget_everything();

  CUstream any_stream();
  Pool& any_pool();
  int number_of(CUmemoryPool handle) const;
  std::string name_of(CUmemoryPool handle) const;
  bool has_pool(int number) const;
  std::size_t live_bytes() const { return live_bytes_; }
  std::size_t any_size();

  std::vector<Block> blocks;
  std::vector<CUstream> streams;  // made by the program
  std::vector<Pool> pools;        // the first is the default one
  CUcontext primary = nullptr;
  std::size_t budget_bytes = 0;
  int next_pool = 1;
  int current_pool = 0;
  bool default_pool_is_exact = true;  // Pool::used_is_exact of the default pool, which outlives a reset
  bool others_must_start = false;     // the device was reset under the other threads

 private:
  std::unique_ptr<Api> api_;
  std::mt19937_64 random_;
  const std::string prefix_;
  unsigned long lines_ = 0;
  unsigned next_block_ = 1;
  std::size_t live_bytes_ = 0;
  std::set<unsigned long long> buffer_ids_;
  friend std::string fresh_buffer_id(World& world, Block& block, unsigned long long id);
};

/// "fresh" for an id never seen, "same" for the block's own; anything else is a fault.
std::string fresh_buffer_id(World& world, Block& block, unsigned long long id);

std::string text(const Block& block);

}  // namespace differential
