// See contents.h.
#include "tests/load/contents.h"

#include <algorithm>
#include <bit>

namespace gpupool::load {
namespace {

constexpr std::uint64_t kPieceBytes = 64;
constexpr std::uint64_t kMostPieces = 6;
constexpr std::uint64_t kBufferBytes = std::uint64_t{256} << 10;
constexpr std::size_t kMostFindings = 5;

// Neighbours in the trace get bytes far apart; never 0, which fresh memory holds.
unsigned char byte_of(std::uint64_t id) {
  return static_cast<unsigned char>((id * 0x9e3779b97f4a7c15) >> 32) % 255 + 1;
}

// Calls visit(offset, bytes) for each piece of a block: the ends, and the multiples of a power of two between them, 2
// to 4.
template <class Visit>
void each_piece(const Block& block, Visit visit) {
  if (block.bytes <= 2 * kPieceBytes) return visit(0, block.bytes);
  visit(0, kPieceBytes);
  visit(block.bytes - kPieceBytes, kPieceBytes);
  const std::uint64_t stride = std::bit_ceil(block.bytes / 4);
  const auto start = reinterpret_cast<std::uint64_t>(block.address);
  for (std::uint64_t place = start / stride * stride + stride; place + kPieceBytes <= start + block.bytes;
       place += stride)
    visit(place - start, kPieceBytes);
}

}  // namespace

Contents::Contents(const Runtime& runtime, Fill fill) : runtime_(runtime), fill_(fill) {
  void* memory = nullptr;
  runtime_.check(runtime_.cudaHostAlloc(&memory, kBufferBytes, cudaHostAllocDefault), "cudaHostAlloc");
  buffer_ = static_cast<unsigned char*>(memory);
}

Contents::~Contents() { runtime_.cudaFreeHost(buffer_); }

void Contents::write(const Block& block) {
  const auto set = [&](std::uint64_t offset, std::uint64_t bytes) {
    const cudaError_t e = runtime_.cudaMemsetAsync(block.address + offset, byte_of(block.id), bytes, block.stream);
    runtime_.check(e, "cudaMemsetAsync");
  };
  if (fill_ == Fill::whole) return set(0, block.bytes);
  each_piece(block, set);
}

void Contents::read(const Block& block) {
  if (used_ + kMostPieces * kPieceBytes > kBufferBytes) settle();
  each_piece(block, [&](std::uint64_t offset, std::uint64_t bytes) {
    const cudaError_t e =
        runtime_.cudaMemcpyAsync(buffer_ + used_, block.address + offset, bytes, cudaMemcpyDeviceToHost, block.stream);
    runtime_.check(e, "cudaMemcpyAsync");
    reads_.push_back({block, offset, bytes, buffer_ + used_});
    used_ += bytes;
  });
}

void Contents::settle() {
  runtime_.check(runtime_.cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  for (const Read& read : reads_) compare(read);
  reads_.clear();
  used_ = 0;
}

void Contents::compare(const Read& read) {
  const unsigned char wanted = byte_of(read.block.id);
  const unsigned char* const end = read.copy + read.bytes;
  const unsigned char* const first = std::find_if(read.copy, end, [&](unsigned char byte) { return byte != wanted; });
  checked_bytes_ += read.bytes;
  if (first == end) return;
  wrong_bytes_ += static_cast<std::uint64_t>(read.bytes - std::count(read.copy, end, wanted));
  if (findings_.size() < kMostFindings)
    findings_.push_back("block " + std::to_string(read.block.id) + " of " + std::to_string(read.block.bytes) +
                        " bytes: byte " + std::to_string(read.offset + (first - read.copy)) + " is " +
                        std::to_string(*first) + ", not " + std::to_string(wanted));
}

}  // namespace gpupool::load
