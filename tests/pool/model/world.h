// The tape and the naive reference side by side, and what must hold after each operation. The reference knows of every
// freed byte which work may still touch it and what its next owner may be made to wait for; it is as simple as can be.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "pool/tape.h"
#include "tests/pool/model/operations.h"

namespace gpupool::model {

/// A promise that did not hold.
struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What the fence is made to do wrong on purpose, to see that it is found.
enum class Sabotage : std::uint8_t {
  kNone,
  kWaitSkipped,       // a wait is reported and not put
  kRecordLost,        // a record is reported and holds nothing
  kContextForStream,  // a wait of one stream is put on all
  kDoneTooEarly,      // a query says done while work is pending
};

class World {
 public:
  explicit World(const Scene& scene, Sabotage sabotage = Sabotage::kNone);
  ~World();

  /// False: there was nothing to do it with. Throws a Violation.
  bool step(const Operation& operation);

 private:
  using Point = MemoryFence::Point;
  class SabotagedFence;
  class WatchedBacking;
  struct Block {
    std::uint64_t end;
    std::uint64_t requested;
    Sharing sharing;
    std::uint16_t tag;
  };
  struct Freed {
    std::uint64_t begin;
    std::uint64_t end;
    Point behind;     // all work that may still touch the bytes
    Point may_delay;  // what their next owner, a stream, may be made to wait for
    Sharing sharing;
  };
  enum class Kind : std::uint8_t { kOrdered, kPlain, kNoWait };

  struct Thread {
    std::uint64_t own_free = 0;  // its last plain free
    Point waited;                // what that natively waits for
  };

  bool allocate(Kind kind, const Operation& operation);
  bool free(Kind kind, const Operation& operation);
  bool end_stream(std::uint32_t who);
  bool share(const Operation& operation);
  bool release(const Operation& operation);
  bool neighbour(std::uint64_t bytes);
  void granted(Kind kind, StreamRef stream, const Request& request, std::uint64_t begin);
  void check_structures() const;
  void memory_leaves(std::uint64_t begin, std::uint64_t bytes);
  void touch_by_all();
  StreamRef stream(std::uint32_t who) const { return streams_[who % streams_.size()]; }
  Thread& thread(std::uint32_t who) { return threads_[who / 3 % threads_.size()]; }

  const Scene& scene_;
  std::map<std::uint64_t, Block> blocks_;
  std::vector<Freed> freed_;
  std::vector<Freed> retained_;  // shared when freed: handed out again once released, or behind other memory
  std::unique_ptr<WatchedBacking> backing_;
  std::unique_ptr<SabotagedFence> fence_;
  Account account_;  // of kCounted
  Accounts accounts_;
  Tape tape_;
  std::vector<StreamRef> streams_;
  std::array<Thread, 3> threads_;
  std::uint64_t live_ = 0;
  std::uint64_t requested_ = 0;
  std::uint64_t counted_ = 0;  // asked for by the blocks of kCounted
  std::uint64_t elsewhere_ = 0;
  const char* left_early_ = nullptr;  // what was broken by memory that was unmapped, inside the tape's call
  bool capturing_ = false;
  bool refused_ = false;  // a call may have been refused, and its error may come out
};

}  // namespace gpupool::model
