// A program that needs more memory than it may have, and reads all of it again.
//   overflow IMAGE BLOCKS MIB ROUNDS
// Takes BLOCKS blocks of MIB MiB, fills them by a kernel, copies each half's blocks over the other half's and back, and
// checks every byte; then frees a half and takes it again, ROUNDS times. Prints one JSON object: wrong bytes, MiB that
// the driver calls the card's and the host's, what cuMemGetInfo says while all of it lives, and the milliseconds of the
// rounds. A request that is refused ends it: status 3, and what it had is printed.
#include "tests/gpu/gpu.h"

#include <chrono>
#include <utility>
#include <vector>

namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;
constexpr int kRefused = 3;

struct Block {
  CUdeviceptr address;
  std::uint32_t seed;
};

class Program {
 public:
  Program(const char* image, std::size_t bytes) : gpu_(image), bytes_(bytes) {}

  void take(std::size_t count) {
    while (blocks_.size() < count) {
      Block block{0, ++seed_};
      const CUresult answer = cuMemAlloc(&block.address, bytes_);
      if (answer == CUDA_ERROR_OUT_OF_MEMORY) {
        std::printf("refused with %zu blocks of %zu MiB\n", blocks_.size(), bytes_ / kMib);
        std::exit(kRefused);
      }
      MUST(answer);
      gpu_.fill(block.address, bytes_, block.seed, nullptr);
      blocks_.push_back(block);
    }
  }
  void free_half() {
    for (std::size_t half = blocks_.size() / 2; blocks_.size() > half; blocks_.pop_back()) {
      MUST(cuMemFree(blocks_[blocks_.size() - 1].address));
    }
  }
  /// Blocks of the one half and the other lie in different memory where the card is full: by the last block of both, as
  /// room.
  void exchange() {
    const Block room = blocks_.back();
    const std::size_t half = (blocks_.size() - 1) / 2;
    for (std::size_t i = 0; i < half; ++i) {
      Block &one = blocks_[i], &other = blocks_[half + i];
      copy(room, one);
      copy(one, other);
      copy(other, room);
      std::swap(one.seed, other.seed);
    }
    blocks_.back().seed = blocks_[2 * half - 1].seed;
  }
  void check() {
    for (const Block& block : blocks_) gpu_.check(block.address, bytes_, block.seed, nullptr);
    MUST(cuCtxSynchronize());
  }
  std::size_t mib_of(CUmemorytype wanted) const {
    std::size_t sum = 0;
    for (const Block& block : blocks_) {
      unsigned type = 0;
      MUST(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block.address));
      if (type == static_cast<unsigned>(wanted)) sum += bytes_ / kMib;
    }
    return sum;
  }
  std::uint32_t wrong() const { return gpu_.wrong(); }

 private:
  void copy(const Block& to, const Block& from) { MUST(cuMemcpyDtoDAsync(to.address, from.address, bytes_, nullptr)); }

  gpu::Gpu gpu_;
  std::size_t bytes_;
  std::uint32_t seed_ = 0;
  std::vector<Block> blocks_;
};

}  // namespace

int main(int count, char** words) {
  if (count != 5) return 2;
  const auto number = [&](int word) { return std::strtoul(words[word], nullptr, 10); };
  Program program(words[1], number(3) * kMib);
  const auto start = std::chrono::steady_clock::now();
  program.take(number(2));
  const std::size_t on_card = program.mib_of(CU_MEMORYTYPE_DEVICE), on_host = program.mib_of(CU_MEMORYTYPE_HOST);
  std::size_t free = 0, total = 0;
  MUST(cuMemGetInfo(&free, &total));
  for (unsigned long round = 0; round < number(4); ++round) {
    program.exchange();
    program.check();
    program.free_half();
    program.take(number(2));
  }
  program.check();
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
  std::printf(
      "{\"wrong\": %u, \"card_mib\": %zu, \"host_mib\": %zu, \"free_mib\": %zu, \"total_mib\": %zu, \"ms\": %.1f}\n",
      program.wrong(), on_card, on_host, free / kMib, total / kMib, taken.count());
  return 0;
}
