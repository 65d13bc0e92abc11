// What a tape asks of the memory below it: physical pieces and a place to map them. Declared here by the consumer;
// device/ implements it on CUDA (vmm: the tape chooses the place; arena: the piece brings its own), tests and replay in
// host memory. Every call happens under the tape's lock and may take microseconds; none may wait for work of the GPU.
// The one exception is destroy() of an arena piece, where the driver itself waits. Nothing throws.
#pragma once

#include <cstdint>

namespace gpupool {

/// What the driver answered. `code` is the driver's own number, handed up so that the program sees native errors; 0 is
/// success.
struct DriverAnswer {
  int code = 0;
  bool ok() const { return code == 0; }
};

/// Memory of the whole card in bytes, all processes together.
struct CardMemory {
  std::uint64_t free = 0;
  std::uint64_t total = 0;
};

/// Where a handle's memory lies.
enum class Location : std::uint8_t { kDevice, kHost };

/// One piece of physical memory. `id` is the backing's own name for it; `address` is set where the piece brings its
/// place.
struct Handle {
  std::uint64_t id = 0;
  std::uint64_t bytes = 0;
  std::uint64_t address = 0;
  Location location = Location::kDevice;
};

enum class Placement : std::uint8_t {
  kChosen,  // the tape reserves one range of addresses and says where each handle goes
  kGiven,   // each handle comes with its addresses and cannot move
};

class Backing {
 public:
  virtual ~Backing() = default;

  virtual Placement placement() const = 0;

  /// Handles and places are multiples of this many bytes (a power of two, at least 512).
  virtual std::uint64_t granularity() const = 0;

  /// Reserves `bytes` of addresses, once per tape; kGiven backings answer success and leave `address` 0.
  virtual DriverAnswer reserve(std::uint64_t bytes, std::uint64_t& address) = 0;
  virtual void unreserve(std::uint64_t address, std::uint64_t bytes) = 0;

  /// Takes `bytes` (a multiple of granularity()) from the card, or from the host for overflow. Fills `handle` on
  /// success.
  virtual DriverAnswer create(std::uint64_t bytes, Location location, Handle& handle) = 0;
  /// Gives it back. The handle is not mapped and no work in flight can reach it.
  virtual void destroy(const Handle& handle) = 0;

  /// Makes the whole handle usable at `address`, for every device that may reach this card. No-op for kGiven.
  virtual DriverAnswer map(const Handle& handle, std::uint64_t address) = 0;
  /// The reverse. The caller knows that no work in flight can reach the bytes.
  virtual DriverAnswer unmap(const Handle& handle, std::uint64_t address) = 0;

  virtual CardMemory card_memory() = 0;

  /// Can memory of the host lie beside the card's? Where not, create() answers that it is not supported.
  virtual bool has_host_memory() const { return false; }
};

}  // namespace gpupool
