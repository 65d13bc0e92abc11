// A backing without memory: it keeps the books that a driver would keep, and nothing else. For tests, and for replaying
// a trace where there is no GPU. Like a driver it refuses what does not fit the card or breaks a rule (a place mapped
// twice, half a handle unmapped, a mapped handle destroyed), and remembers the first broken rule, so that a test need
// not look at every answer. Owned by whoever makes it; called under its tape's lock, as every backing.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "pool/backing.h"

namespace gpupool {

class MemoryBacking final : public Backing {
 public:
  struct Options {
    Placement placement = Placement::kChosen;
    std::uint64_t granularity = std::uint64_t{2} << 20;
    std::uint64_t card_bytes = std::uint64_t{8} << 30;
    std::uint64_t host_bytes = ~std::uint64_t{0};  // what the host can lend; 0: the driver knows of no such memory
  };
  /// What it can be told to refuse, and counts.
  enum class Operation : std::uint8_t { kReserve, kUnreserve, kCreate, kDestroy, kMap, kUnmap, kCardMemory };

  /// Answers with these numbers when it refuses by itself; a driver's numbers for the same.
  static constexpr int kBrokenRule = 1;
  static constexpr int kCardFull = 2;
  static constexpr int kNotSupported = 801;

  explicit MemoryBacking(const Options& options)
      : options_(options), free_(options.card_bytes), host_free_(options.host_bytes) {}
  MemoryBacking() : MemoryBacking(Options{}) {}

  Placement placement() const override { return options_.placement; }
  std::uint64_t granularity() const override { return options_.granularity; }
  DriverAnswer reserve(std::uint64_t bytes, std::uint64_t& address) override;
  void unreserve(std::uint64_t address, std::uint64_t bytes) override;
  DriverAnswer create(std::uint64_t bytes, Location location, Handle& handle) override;
  void destroy(const Handle& handle) override;
  DriverAnswer map(const Handle& handle, std::uint64_t address) override;
  DriverAnswer unmap(const Handle& handle, std::uint64_t address) override;
  CardMemory card_memory() override;
  bool has_host_memory() const override { return options_.placement == Placement::kChosen && options_.host_bytes != 0; }

  /// From now on, the `nth` call (1 is the next) and those after it, `times` in all, answer `code`; one such order per
  /// operation, a new one replaces it.
  void refuse(Operation operation, std::uint64_t nth, int code, std::uint64_t times = 1);
  /// Memory that other processes hold: what card_memory() lacks. At most what is free now.
  void take_elsewhere(std::uint64_t bytes);
  void give_elsewhere(std::uint64_t bytes);

  std::uint64_t calls(Operation operation) const { return calls_[index(operation)]; }
  /// Of the handles of these calls: kCreate, kDestroy, kMap and kUnmap.
  std::uint64_t bytes(Operation operation) const { return bytes_[index(operation)]; }
  /// Is every byte of this range mapped (kChosen) or part of a live piece (kGiven)?
  bool usable(std::uint64_t address, std::uint64_t bytes) const;
  std::uint64_t handles() const { return pieces_.size(); }
  std::uint64_t mapped_bytes() const { return mapped_bytes_; }
  /// The first rule that a caller broke, or null.
  const char* broken_rule() const { return broken_; }

 private:
  struct Piece {
    std::uint64_t bytes = 0;
    Location location = Location::kDevice;
    std::uint64_t mapped_at = 0;  // 0: not mapped
  };
  struct Order {
    std::uint64_t call = 0;  // number of the first call to refuse
    std::uint64_t times = 0;
    int code = 0;
  };
  static constexpr std::size_t kOperations = 7;
  static std::size_t index(Operation operation) { return static_cast<std::size_t>(operation); }

  int count(Operation operation, std::uint64_t bytes = 0);
  DriverAnswer broken(const char* rule);
  bool whole_units(std::uint64_t value) const { return value % options_.granularity == 0; }
  std::uint64_t take_addresses(std::uint64_t bytes);

  Options options_;
  std::uint64_t free_;
  std::uint64_t host_free_;
  std::uint64_t mapped_bytes_ = 0;
  std::uint64_t next_id_ = 1;
  std::uint64_t next_address_ = std::uint64_t{0x7f} << 40;
  std::map<std::uint64_t, std::uint64_t> reservations_;  // address -> bytes
  std::map<std::uint64_t, std::uint64_t> places_;        // usable address -> bytes
  std::map<std::uint64_t, Piece> pieces_;                // by handle id
  std::array<std::uint64_t, kOperations> calls_{};
  std::array<std::uint64_t, kOperations> bytes_{};
  std::array<Order, kOperations> orders_{};
  const char* broken_ = nullptr;
};

}  // namespace gpupool
