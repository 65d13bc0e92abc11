// The file of a recorded trace: what the recorder (preload/) writes and the reader (cli/trace/) reads.
// A file is a TraceFileHead and blocks. A block is a TraceBlockHead and its payload, one zstd frame. The payload of
// kText is lines `TYPE NUMBER KEY VALUE` about processes, calls and pools, each before the first record that names it;
// that of kRecords is `count` records, byte by byte: first the first bytes of all of them, then the second ones, and so
// on, which packs well. Blocks are complete in themselves, so a file that ends in the middle of one holds all before
// it. Plain data, little-endian, no pointers.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace gpupool {

static_assert(std::endian::native == std::endian::little, "the layout is that of memory");

constexpr std::uint64_t kTraceFileMagic = 0x6c6f6f7075706789;   // \x89gpupool
constexpr std::uint64_t kTraceBlockMagic = 0x6b636f6c62707467;  // gtpblock
constexpr std::uint32_t kTraceVersion = 1;
/// No payload of a block is larger, unpacked.
constexpr std::uint32_t kTraceMostPayload = std::uint32_t{1} << 22;

struct TraceFileHead {
  std::uint64_t magic = kTraceFileMagic;
  std::uint32_t version = kTraceVersion;
  std::uint32_t bytes = 16;  // of this head; later versions may have more
};

enum class TraceBlockKind : std::uint32_t { kText, kRecords };

struct TraceBlockHead {
  std::uint64_t magic = kTraceBlockMagic;
  std::uint64_t checksum = 0;  // trace_checksum of head and packed payload
  TraceBlockKind kind = TraceBlockKind::kText;
  std::uint32_t number = 0;   // in the file, from 0
  std::uint32_t count = 0;    // records
  std::uint32_t payload = 0;  // bytes, unpacked
  std::uint32_t packed = 0;   // bytes in the file, after this head
  std::uint32_t reserved = 0;
  std::uint64_t dropped = 0;  // records lost so far, for want of room in the ring or on the disk
  // Both clocks at one moment: of records, after all of them; of text, when the recording began. A record's time lies
  // on the line through the moment of its block and that of the records before, or the beginning.
  std::uint64_t ticks = 0;
  std::uint64_t monotonic_ns = 0;
};

/// The stream of a record that is not stream-ordered, and of a free whose stream is not known.
constexpr std::uint64_t kTraceNoStream = ~std::uint64_t{0};

/// A record's pool is the number of a pool, or this and the ordinal of the device, for what the driver serves.
constexpr std::uint16_t kTraceDevicePools = 0xff00;
constexpr std::uint16_t kTraceNoPool = 0xffff;

enum class TraceKind : std::uint8_t {
  kRequest,  // bytes, address and stream; recorded when it is served
  kFree,     // address and stream; recorded before it is done, so that no other thread can have the address by then
  kMark,  // and the rows of trace_marks.def behind it: bytes; reserved instead of the stream; the count instead of the
          // address
};

enum TraceFlag : std::uint8_t {
  kTraceByDriver = 1,  // not out of a pool
  kTraceFenced = 2,    // a wait was put on the device
};

struct TraceRecord {
  std::uint64_t ticks = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stream = kTraceNoStream;  // any number that stands for it
  std::uint16_t thread = 0;               // any number that stands for it
  std::uint16_t pool = kTraceNoPool;
  std::uint16_t call = 0;  // explained by a line of text
  TraceKind kind = TraceKind::kRequest;
  std::uint8_t flags = 0;
};

static_assert(sizeof(TraceFileHead) == 16 && sizeof(TraceBlockHead) == 64 && sizeof(TraceRecord) == 40);
static_assert(std::is_trivially_copyable_v<TraceRecord> && std::is_trivially_copyable_v<TraceBlockHead>);

/// A text as what a checksum is made of.
inline std::span<const unsigned char> trace_bytes(std::string_view text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}

/// FNV-1a, 64 bits (draft-eastlake-fnv), of `head` with checksum 0 and what follows it.
inline std::uint64_t trace_checksum(TraceBlockHead head, std::span<const unsigned char> packed) {
  std::uint64_t sum = 0xcbf29ce484222325;
  const auto add = [&sum](std::span<const unsigned char> bytes) {
    for (const unsigned char byte : bytes) sum = (sum ^ byte) * 0x100000001b3;
  };
  head.checksum = 0;
  unsigned char raw[sizeof head];
  std::memcpy(raw, &head, sizeof head);
  add(raw);
  add(packed);
  return sum;
}

/// Records to the bytes of a payload, and back. `bytes` holds sizeof(TraceRecord) for each.
inline void spread_records(std::span<const TraceRecord> records, unsigned char* bytes) {
  for (std::size_t i = 0; i < records.size(); ++i) {
    unsigned char raw[sizeof(TraceRecord)];
    std::memcpy(raw, &records[i], sizeof raw);
    for (std::size_t byte = 0; byte < sizeof raw; ++byte) bytes[byte * records.size() + i] = raw[byte];
  }
}

inline void gather_records(const unsigned char* bytes, std::span<TraceRecord> records) {
  for (std::size_t i = 0; i < records.size(); ++i) {
    unsigned char raw[sizeof(TraceRecord)];
    for (std::size_t byte = 0; byte < sizeof raw; ++byte) raw[byte] = bytes[byte * records.size() + i];
    std::memcpy(&records[i], raw, sizeof raw);
  }
}

}  // namespace gpupool
