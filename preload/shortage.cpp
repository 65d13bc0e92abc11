// See shortage.h.
#include "preload/shortage.h"

#include "config/bytes.h"
#include "config/text.h"

namespace gpupool {
namespace {

// What a context and the libraries of one process may take without anybody else being there.
constexpr std::uint64_t kOwnShare = 2_GiB;

// For capacity: the limit if it is what binds, else who has the rest of the card, else the program itself.
std::string remedy(const Shortage& shortage) {
  if (!shortage.is_capacity) return "set pool.handle=2MiB, or pool.max_split to keep large holes whole";
  const std::uint64_t wanted = shortage.live + shortage.request;
  if (shortage.limit + shortage.headroom < shortage.total && wanted + shortage.headroom <= shortage.total)
    return "raise pool.max";
  if (shortage.others > kOwnShare && wanted + shortage.headroom <= shortage.total)
    return "end what else runs on the card, or give each process its share with pool.max";
  return std::string("use less memory") + (shortage.overflow == 0 ? ", or let the host stand in with pool.overflow=host"
                                                                  : ", or raise pool.overflow_max");
}

}  // namespace

std::string out_of_memory_text(const Shortage& shortage) {
  return "out of memory on device " + std::to_string(shortage.device) + " (" +
         (shortage.is_capacity ? "capacity" : "fragmentation") + "): request " + readable(shortage.request) +
         ", live " + readable(shortage.live) + ", reserved " + readable(shortage.reserved) + ", limit " +
         readable(shortage.limit) + ", largest hole " + readable(shortage.largest_hole) + ", headroom " +
         readable(shortage.headroom) + ", others and the driver hold " + readable(shortage.others) + "; " +
         remedy(shortage) + " (docs/out-of-memory.md)";
}

}  // namespace gpupool
