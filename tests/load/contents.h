// What stands in the blocks. Each block gets its own byte, written on its stream right after the request and read back
// on its stream right before the free, both asynchronously: memory handed out too early shows as wrong bytes. One
// thread. Written are pieces of a block: its ends, and places that depend on the address alone and not on the block, so
// that whoever gets the same memory writes to the same places; a block may also be filled whole.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tests/load/runtime.h"

namespace gpupool::load {

enum class Fill { pieces, whole };

struct Block {
  std::uint64_t id = 0;
  char* address = nullptr;
  std::uint64_t bytes = 0;
  cudaStream_t stream = nullptr;
};

class Contents {
 public:
  Contents(const Runtime& runtime, Fill fill);
  ~Contents();
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;

  void write(const Block& block);
  /// Queues the copies to the host; they are compared when the host buffer is full, and by settle().
  void read(const Block& block);
  /// Waits for the device and compares what has been read.
  void settle();

  std::uint64_t checked_bytes() const { return checked_bytes_; }
  std::uint64_t wrong_bytes() const { return wrong_bytes_; }
  /// The first few blocks that held something else, a line each.
  const std::vector<std::string>& findings() const { return findings_; }

 private:
  struct Read {
    Block block;
    std::uint64_t offset = 0;  // in the block
    std::uint64_t bytes = 0;
    const unsigned char* copy = nullptr;
  };
  void compare(const Read& read);

  const Runtime& runtime_;
  Fill fill_;
  unsigned char* buffer_ = nullptr;  // pinned
  std::uint64_t used_ = 0;
  std::vector<Read> reads_;
  std::uint64_t checked_bytes_ = 0;
  std::uint64_t wrong_bytes_ = 0;
  std::vector<std::string> findings_;
};

}  // namespace gpupool::load
