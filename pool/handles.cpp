#include "pool/handles.h"

namespace gpupool {

const char* Handles::validate() const {
  if (const char* broken = by_place_.validate(tree_)) return broken;
  std::uint64_t end = 0;
  std::uint64_t device = 0;
  std::uint64_t host = 0;
  for (Map::Cursor c = by_place_.first(tree_); c.valid(); c = by_place_.next(c)) {
    const Handle& handle = slots_[by_place_.value(c)];
    if (by_place_.key(c) < end) return "handles: two handles overlap";
    end = by_place_.key(c) + handle.bytes / kGranuleBytes;
    (handle.location == Location::kDevice ? device : host) += handle.bytes;
  }
  if (device != device_bytes_ || host != host_bytes_) return "handles: sum of bytes";
  return nullptr;
}

}  // namespace gpupool
