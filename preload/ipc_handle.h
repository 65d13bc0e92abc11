// What two preloaded processes say to each other about a block: the 64 bytes that cuIpcGetMemHandle hands out, and the
// question and answer over the exporter's socket (ipc_export.h, ipc_import.h). Plain data of one machine: both ends are
// the same build, and `magic` carries the version.
#pragma once

#include "preload/real.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

namespace gpupool {

/// Random bytes that name the exporting process: its socket, and what tells its own handles from others'.
using ExporterKey = std::array<unsigned char, 16>;

/// A CUipcMemHandle of ours. The driver knows no handle that begins like this, so an importer without the preload gets
/// the driver's error, never other memory.
struct SharedHandle {
  static constexpr std::uint64_t kMagic = 0x32304c4f4f507067;  // "gpPOOL02"
  std::uint64_t magic = kMagic;
  ExporterKey exporter{};
  std::uint64_t block = 0;    // its BUFFER_ID, which no other block ever has
  std::uint64_t address = 0;  // where it lies in the exporter

  bool operator==(const SharedHandle&) const = default;
};
static_assert(sizeof(SharedHandle) <= sizeof(CUipcMemHandle));

inline CUipcMemHandle pack(const SharedHandle& shared) {
  CUipcMemHandle handle{};
  std::memcpy(&handle, &shared, sizeof shared);
  return handle;
}

/// Nothing for a handle that is not ours.
inline std::optional<SharedHandle> unpack(const CUipcMemHandle& handle) {
  SharedHandle shared;
  std::memcpy(static_cast<void*>(&shared), &handle, sizeof shared);
  if (shared.magic != SharedHandle::kMagic) return std::nullopt;
  return shared;
}

/// The driver's own handle of a slab, for the block that begins it: any importer can open it, and one with the preload
/// reads the block's size from the last eight bytes, which the driver neither writes nor reads.
class SizedHandle {
 public:
  static void put(CUipcMemHandle& native, std::uint64_t requested) {
    const std::uint64_t tail = kMark | requested;
    std::memcpy(native.reserved + kPlace, &tail, sizeof tail);
  }
  /// Nothing for a handle that came so from the driver.
  static std::optional<std::uint64_t> size_of(const CUipcMemHandle& native) {
    std::uint64_t tail = 0;
    std::memcpy(&tail, native.reserved + kPlace, sizeof tail);
    if ((tail & ~kMost) != kMark) return std::nullopt;
    return tail & kMost;
  }

 private:
  static constexpr std::size_t kPlace = sizeof(CUipcMemHandle) - sizeof(std::uint64_t);
  static constexpr std::uint64_t kMost = (std::uint64_t{1} << 48) - 1;
  static constexpr std::uint64_t kMark = std::uint64_t{0x6770} << 48;
};

enum class ShareVerb : std::uint64_t {
  kOpen,   // asks; the importer has the block from the answer on, until it says kClose
  kMore,   // asks for further pieces of a block with more than kMostPieces handles below it
  kClose,  // says that its work on the block is done and will get no answer; an open that failed is closed, too
};

/// What the importer says, on a line that it keeps as long as it has anything open.
struct ShareQuestion {
  std::uint64_t magic = SharedHandle::kMagic;
  ShareVerb verb = ShareVerb::kOpen;
  std::uint64_t block = 0;
  std::uint64_t address = 0;
  std::uint64_t first = 0;  // pieces it has already
};

enum class ShareKind : std::uint32_t {
  kRefused,  // no such block (any more)
  kPieces,   // handles of virtual memory; a descriptor of each comes along
  kSlab,     // a part of memory that has a handle of the driver's own
};

/// The exporter's answer.
struct ShareAnswer {
  static constexpr unsigned kMostPieces = 64;
  std::uint64_t magic = SharedHandle::kMagic;
  ShareKind kind = ShareKind::kRefused;
  std::uint32_t pieces = 0;     // in this answer
  std::uint64_t span = 0;       // bytes of all handles together
  std::uint64_t offset = 0;     // where the block begins, from the first byte of the first handle or of the slab
  std::uint64_t requested = 0;  // bytes of the block
  CUipcMemHandle slab{};
  std::array<std::uint64_t, kMostPieces> bytes{};  // of each piece
};

/// Does an answer keep within itself? What it says of memory is the driver's to check.
inline bool makes_sense(const ShareAnswer& answer) {
  if (answer.magic != SharedHandle::kMagic || answer.pieces > ShareAnswer::kMostPieces) return false;
  switch (answer.kind) {
    case ShareKind::kRefused:
      return true;
    case ShareKind::kPieces:
      return answer.offset <= answer.span && answer.requested <= answer.span - answer.offset;
    case ShareKind::kSlab:
      return answer.pieces == 0 && answer.requested <= ~std::uint64_t{0} - answer.offset;
  }
  return false;
}

/// The name of an exporter's socket, in the abstract name space: it needs no file, and goes with the process.
struct ExporterAddress {
  sockaddr_un address{};
  socklen_t length = 0;
};

inline ExporterAddress address_of(const ExporterKey& key) {
  constexpr char kPrefix[] = "gpupool-ipc-";
  constexpr char kDigits[] = "0123456789abcdef";
  ExporterAddress made;
  made.address.sun_family = AF_UNIX;
  char* to = made.address.sun_path + 1;
  std::memcpy(to, kPrefix, sizeof kPrefix - 1);
  to += sizeof kPrefix - 1;
  for (unsigned char byte : key) {
    *to++ = kDigits[byte >> 4];
    *to++ = kDigits[byte & 15];
  }
  made.length = static_cast<socklen_t>(to - reinterpret_cast<char*>(&made.address));
  return made;
}

/// Both ends belong to one user, or to root.
inline bool may_talk(uid_t peer, uid_t own) { return peer == own || peer == 0; }

}  // namespace gpupool
