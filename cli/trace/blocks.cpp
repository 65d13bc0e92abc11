// See blocks.h.
#include "cli/trace/blocks.h"

#include <zstd.h>

#include <cstring>

namespace gpupool::cli {
namespace {

constexpr std::size_t kSkip = std::size_t{1} << 16;
constexpr std::size_t kMostNotes = 100;

std::span<const unsigned char> bytes_of(const std::string& text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}

}  // namespace

TraceBlocks::TraceBlocks(Source& source) : source_(source) {
  const std::string raw = source_.text(sizeof(TraceFileHead));
  TraceFileHead head;
  std::memcpy(&head, raw.data(), sizeof head);
  if (head.version != kTraceVersion) {
    source_.fault_at_offset("the trace has version " + std::to_string(head.version) + "; this command reads version " +
                            std::to_string(kTraceVersion));
  }
  if (head.bytes < sizeof head || head.bytes > 4096) source_.fault_at_offset("the head of the trace is damaged");
  source_.text(head.bytes - sizeof head);
}

bool TraceBlocks::next() {
  while (!source_.peek(1).empty()) {
    if (block()) return true;
  }
  if (count_ == 0) source_.fault_at_offset("the trace ends before its first whole block");
  return false;
}

/// True for a whole block; false where a note stands in its place.
bool TraceBlocks::block() {
  const std::uint64_t begin = source_.offset();
  const std::string_view raw = source_.peek(sizeof(TraceBlockHead));
  if (raw.size() < sizeof(TraceBlockHead)) return cut_off(begin), false;
  std::memcpy(&head_, raw.data(), sizeof head_);
  const TraceBlockHead& head = head_;
  if (head.magic != kTraceBlockMagic || head.payload > kTraceMostPayload ||
      head.packed > ZSTD_compressBound(kTraceMostPayload))
    return damaged(begin), false;
  const std::string_view whole = source_.peek(sizeof head + head.packed);
  if (whole.size() < sizeof head + head.packed) return cut_off(begin), false;
  const std::string packed{whole.substr(sizeof head)};
  if (trace_checksum(head, bytes_of(packed)) != head.checksum) return damaged(begin), false;
  payload_.resize(head.payload);
  if (ZSTD_decompress(payload_.data(), payload_.size(), packed.data(), packed.size()) != payload_.size())
    return damaged(begin), false;
  source_.text(sizeof head + head.packed);
  ++count_;
  return true;
}

void TraceBlocks::cut_off(std::uint64_t begin) {
  notes_.push_back("byte " + std::to_string(begin) + ": the last block is cut off and left out");
  while (!source_.peek(1).empty()) source_.text(source_.peek(kSkip).size());
}

// On to the next place that looks like a block.
void TraceBlocks::damaged(std::uint64_t begin) {
  char magic[sizeof kTraceBlockMagic];
  std::memcpy(magic, &kTraceBlockMagic, sizeof magic);
  source_.byte();
  for (;;) {
    const std::string_view next = source_.peek(kSkip);
    const std::size_t found = next.find(std::string_view{magic, sizeof magic});
    if (found != std::string_view::npos) {
      source_.text(found);
      break;
    }
    if (next.size() < sizeof magic) {
      source_.text(next.size());
      break;
    }
    source_.text(next.size() - sizeof magic + 1);
  }
  notes_.push_back("byte " + std::to_string(begin) + ": " + std::to_string(source_.offset() - begin) +
                   " damaged bytes are left out");
  if (notes_.size() > kMostNotes) source_.fault_at_offset("nearly everything is damaged");
}

}  // namespace gpupool::cli
