// The handles of a tape: which physical piece is mapped where. One entry per mapped handle, ordered by place.
// Owned by the tape, under its lock.
#pragma once

#include <cstdint>

#include "pool/backing.h"
#include "pool/granule.h"
#include "pool/node_slab.h"
#include "pool/ordered_map.h"

namespace gpupool {

class Handles {
 public:
  void add(Granules begin, const Handle& handle) {
    std::uint32_t index = slots_.take();
    slots_[index] = handle;
    by_place_.insert(tree_, begin, index);
    (handle.location == Location::kDevice ? device_bytes_ : host_bytes_) += handle.bytes;
  }

  /// The handle mapped at exactly `begin` leaves the list.
  Handle remove(Granules begin) {
    Map::Cursor c = by_place_.floor(tree_, begin);
    std::uint32_t index = by_place_.value(c);
    Handle handle = slots_[index];
    slots_.give(index);
    by_place_.erase(tree_, begin);
    (handle.location == Location::kDevice ? device_bytes_ : host_bytes_) -= handle.bytes;
    return handle;
  }

  /// Calls visit(begin, handle) for each handle that lies wholly in `range`, in order of place.
  template <class Visit>
  void visit_within(Range range, Visit&& visit) const {
    for (Map::Cursor c = by_place_.at_least(tree_, range.begin); c.valid(); c = by_place_.next(c)) {
      const Handle& handle = slots_[by_place_.value(c)];
      if (by_place_.key(c) >= range.end || by_place_.key(c) + handle.bytes / kGranuleBytes > range.end) break;
      visit(by_place_.key(c), handle);
    }
  }

  /// Calls visit(begin, handle) for each handle that holds a part of `range`, in order of place, until it answers
  /// false.
  template <class Visit>
  void visit_below(Range range, Visit&& visit) const {
    Map::Cursor c = by_place_.floor(tree_, range.begin);
    for (; c.valid() && by_place_.key(c) < range.end; c = by_place_.next(c)) {
      if (!visit(by_place_.key(c), slots_[by_place_.value(c)])) break;
    }
  }

  bool empty() const { return tree_.empty(); }
  /// Where the first one begins; there is one.
  Granules first() const { return by_place_.key(by_place_.at_least(tree_, 0)); }
  std::uint64_t device_bytes() const { return device_bytes_; }
  std::uint64_t host_bytes() const { return host_bytes_; }
  std::uint64_t bytes(Location location) const { return location == Location::kDevice ? device_bytes_ : host_bytes_; }

  const char* validate() const;

 private:
  using Map = OrderedMap<Granules, std::uint32_t>;
  NodeSlab<Handle> slots_;
  Map by_place_;
  Map::Tree tree_;
  std::uint64_t device_bytes_ = 0;
  std::uint64_t host_bytes_ = 0;
};

}  // namespace gpupool
