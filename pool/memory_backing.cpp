// See memory_backing.h.
#include "pool/memory_backing.h"

namespace gpupool {
namespace {

using Ranges = std::map<std::uint64_t, std::uint64_t>;

/// The range of `ranges` that holds `address`, or end().
Ranges::const_iterator range_of(const Ranges& ranges, std::uint64_t address) {
  auto after = ranges.upper_bound(address);
  if (after == ranges.begin()) return ranges.end();
  const auto found = std::prev(after);
  return address - found->first < found->second ? found : ranges.end();
}

bool overlaps(const Ranges& ranges, std::uint64_t address, std::uint64_t bytes) {
  if (range_of(ranges, address) != ranges.end()) return true;
  const auto next = ranges.lower_bound(address);
  return next != ranges.end() && next->first - address < bytes;
}

}  // namespace

DriverAnswer MemoryBacking::reserve(std::uint64_t bytes, std::uint64_t& address) {
  address = 0;
  if (const int code = count(Operation::kReserve)) return {code};
  if (options_.placement == Placement::kGiven) return {};
  if (bytes == 0 || !whole_units(bytes)) return broken("reserve: not whole units");
  address = take_addresses(bytes);
  reservations_.emplace(address, bytes);
  return {};
}

void MemoryBacking::unreserve(std::uint64_t address, std::uint64_t bytes) {
  count(Operation::kUnreserve);
  if (options_.placement == Placement::kGiven) return;
  const auto found = reservations_.find(address);
  if (found == reservations_.end() || found->second != bytes) {
    broken("unreserve: no such reservation");
  } else if (overlaps(places_, address, bytes)) {
    broken("unreserve: something is still mapped there");
  } else {
    reservations_.erase(found);
  }
}

DriverAnswer MemoryBacking::create(std::uint64_t bytes, Location location, Handle& handle) {
  if (const int code = count(Operation::kCreate, bytes)) return {code};
  if (bytes == 0 || !whole_units(bytes)) return broken("create: not whole units");
  const bool given = options_.placement == Placement::kGiven;
  if (location == Location::kHost) {
    if (!has_host_memory()) return {kNotSupported};
    if (bytes > host_free_) return {kCardFull};
    host_free_ -= bytes;
  } else {
    if (bytes > free_) return {kCardFull};
    free_ -= bytes;
  }
  handle = {next_id_++, bytes, 0, location};
  if (given) {
    handle.address = take_addresses(bytes);
    places_.emplace(handle.address, bytes);
    mapped_bytes_ += bytes;
  }
  pieces_.emplace(handle.id, Piece{bytes, location, 0});
  return {};
}

void MemoryBacking::destroy(const Handle& handle) {
  count(Operation::kDestroy, handle.bytes);
  const auto found = pieces_.find(handle.id);
  if (found == pieces_.end()) {
    broken("destroy: no such handle");
    return;
  }
  if (found->second.mapped_at != 0) {
    broken("destroy: the handle is mapped");
    return;
  }
  if (options_.placement == Placement::kGiven) {
    places_.erase(handle.address);
    mapped_bytes_ -= found->second.bytes;
  }
  (found->second.location == Location::kDevice ? free_ : host_free_) += found->second.bytes;
  pieces_.erase(found);
}

DriverAnswer MemoryBacking::map(const Handle& handle, std::uint64_t address) {
  if (const int code = count(Operation::kMap, handle.bytes)) return {code};
  if (options_.placement == Placement::kGiven) return {};
  const auto found = pieces_.find(handle.id);
  if (found == pieces_.end()) return broken("map: no such handle");
  Piece& piece = found->second;
  if (piece.bytes != handle.bytes) return broken("map: not the whole handle");
  if (piece.mapped_at != 0) return broken("map: the handle is mapped already");
  if (!whole_units(address)) return broken("map: not at a whole unit");
  const auto reservation = range_of(reservations_, address);
  if (reservation == reservations_.end() || reservation->first + reservation->second - address < piece.bytes) {
    return broken("map: not inside a reservation");
  }
  if (overlaps(places_, address, piece.bytes)) return broken("map: something is mapped there already");
  places_.emplace(address, piece.bytes);
  piece.mapped_at = address;
  mapped_bytes_ += piece.bytes;
  return {};
}

DriverAnswer MemoryBacking::unmap(const Handle& handle, std::uint64_t address) {
  if (const int code = count(Operation::kUnmap, handle.bytes)) return {code};
  if (options_.placement == Placement::kGiven) return {};
  const auto found = pieces_.find(handle.id);
  if (found == pieces_.end() || found->second.mapped_at != address || address == 0) {
    return broken("unmap: the handle is not mapped there");
  }
  places_.erase(address);
  mapped_bytes_ -= found->second.bytes;
  found->second.mapped_at = 0;
  return {};
}

CardMemory MemoryBacking::card_memory() {
  if (count(Operation::kCardMemory) != 0) return {};
  return {free_, options_.card_bytes};
}

void MemoryBacking::refuse(Operation operation, std::uint64_t nth, int code, std::uint64_t times) {
  orders_[index(operation)] = {calls(operation) + nth, times, code};
}

void MemoryBacking::take_elsewhere(std::uint64_t bytes) { free_ -= bytes < free_ ? bytes : free_; }

void MemoryBacking::give_elsewhere(std::uint64_t bytes) { free_ += bytes; }

bool MemoryBacking::usable(std::uint64_t address, std::uint64_t bytes) const {
  const std::uint64_t end = address + bytes;
  while (address < end) {
    const auto range = range_of(places_, address);
    if (range == places_.end()) return false;
    address = range->first + range->second;
  }
  return true;
}

/// Counts a call; the code it was ordered to answer, 0 for none.
int MemoryBacking::count(Operation operation, std::uint64_t bytes) {
  const std::uint64_t call = ++calls_[index(operation)];
  bytes_[index(operation)] += bytes;
  const Order& order = orders_[index(operation)];
  return call >= order.call && call - order.call < order.times ? order.code : 0;
}

DriverAnswer MemoryBacking::broken(const char* rule) {
  if (!broken_) broken_ = rule;
  return {kBrokenRule};
}

/// Addresses are never used twice, and never adjacent: two reservations do not meet.
std::uint64_t MemoryBacking::take_addresses(std::uint64_t bytes) {
  const std::uint64_t address = next_address_;
  const std::uint64_t units = (bytes + options_.granularity - 1) / options_.granularity;
  next_address_ += (units + 1) * options_.granularity;
  return address;
}

}  // namespace gpupool
