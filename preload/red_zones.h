// pool.guard=on: the bytes between the end of a request and the end of its block are a red zone of at least 512 bytes
// with a known content, looked at when the block is freed; freed bytes become 0xFF, which no number is. All of it is
// work in the program's own order on the GPU (on the stream of the call; for plain calls on streams of ours, ordered
// with the whole context); the host never waits, and reads the result whenever it has arrived. One for each Home, used
// under the lock of its tape, which keeps captures away.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "preload/real.h"

#include "device/driver_api.h"
#include "preload/hooks.h"

namespace gpupool {

class Captures;
class Home;

class RedZones {
 public:
  /// With the context of `home` current. Without the driver's functions or memory for it, nothing is guarded.
  RedZones(const DriverApi& api, const Captures& captures, Home& home);
  RedZones(const RedZones&) = delete;
  RedZones& operator=(const RedZones&) = delete;

  /// A block of `bytes` has been given out: fills its red zone. `stream` is null for a plain request.
  void given(HookRow row, std::uint64_t address, std::uint64_t bytes, CUstream stream);
  /// The block is about to be freed: keeps its red zone for comparison, and poisons its bytes.
  void taking_back(HookRow row, std::uint64_t address, CUstream stream);
  /// Compares what has arrived, and logs what was overrun. Makes no CUDA call.
  void look();
  /// The same at the end, with the figures of the whole run.
  void finish();

 private:
  struct Owner {
    std::uint64_t bytes = 0;
    std::uint64_t number = 0;  // of the request, counted from 1 in this pool
    HookRow by{};
  };
  struct Pending {
    unsigned slot;
    std::uint64_t address;
    Owner owner;
    HookRow freed_by;
  };

  bool ordered(CUstream stream) const;
  bool fill(std::uint64_t address, const Owner& owner, CUstream stream);
  void check(HookRow row, std::uint64_t address, const Owner& owner, CUstream stream);
  unsigned char* slot(unsigned number) const;
  std::string compare(const Pending& pending);

  const DriverApi& api_;
  const Captures& captures_;
  Home& home_;
  unsigned char* area_ = nullptr;  // the pattern, then the slots: memory of ours, registered with the driver
  CUstream fills_ = nullptr;       // waits for nothing
  CUstream checks_ = nullptr;      // waits for the work before a plain free
  CUevent filled_ = nullptr;
  CUevent freed_ = nullptr;
  std::unordered_map<std::uint64_t, Owner> owners_;  // by address: the blocks with a red zone
  std::vector<Pending> pending_;
  std::vector<unsigned> free_slots_;
  std::uint64_t requests_ = 0;
  std::uint64_t checked_ = 0;
  std::uint64_t overrun_ = 0;
  std::uint64_t unchecked_ = 0;
};

}  // namespace gpupool
