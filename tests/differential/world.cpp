// See world.h.
#include "tests/differential/world.h"

#include <algorithm>
#include <cstdio>

namespace differential {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

}  // namespace

std::string text(const Block& block) { return "b" + std::to_string(block.number); }

void World::say(const std::string& call, int result, const std::string& answer) {
  ++lines_;
  const int last = api_->last_error();
  std::printf("%s%s -> %d%s%s%s%s\n", prefix_.c_str(), call.c_str(), result, last ? " last " : "",
              last ? std::to_string(last).c_str() : "", answer.empty() ? "" : " ", answer.c_str());
  std::fflush(stdout);  // a crash shows what came before it
}

std::string World::unless(Exception, const std::string&) { return "~"; }

std::string World::enter(CUdeviceptr address, std::size_t bytes, Kind kind, int pool, CUstream stream) {
  Block block{.number = next_block_++, .address = address, .bytes = bytes, .kind = kind, .pool = pool};
  const int made = driver().cuEventCreate_(&block.last, CU_EVENT_DISABLE_TIMING);
  for (const Block& other : blocks) {
    if (address < other.address + other.bytes && other.address < address + bytes) return "OVERLAPS " + text(other);
  }
  blocks.push_back(block);
  live_bytes_ += bytes;
  write(blocks.back(), stream);
  return text(block) + (address % 512 == 0 ? "" : " UNALIGNED") + (made ? " no event" : "");
}

Block* World::any_block() { return blocks.empty() ? nullptr : &blocks[below(blocks.size())]; }

void World::before(Block& block, CUstream stream) { driver().cuStreamWaitEvent_(stream, block.last, 0); }

void World::after(Block& block, CUstream stream) { driver().cuEventRecord_(block.last, stream); }

void World::write(Block& block, CUstream stream) {
  block.content = static_cast<unsigned char>(below(256));
  before(block, stream);
  block.written = driver().cuMemsetD8Async_(block.address, block.content, block.bytes, stream) == CUDA_SUCCESS;
  after(block, stream);
}

void World::forget(Block& block) {
  driver().cuEventDestroy_(block.last);
  live_bytes_ -= block.bytes;
  block = blocks.back();
  blocks.pop_back();
}

void World::forget_everything() {
  blocks.clear();
  streams.clear();
  pools.clear();
  live_bytes_ = 0;
}

CUstream World::any_stream() {
  const std::uint64_t choice = below(streams.size() + 3);
  if (choice == 0) return nullptr;
  if (choice == 1) return CU_STREAM_LEGACY;
  if (choice == 2) return CU_STREAM_PER_THREAD;
  return streams[choice - 3];
}

Pool& World::any_pool() { return pools[below(pools.size())]; }

int World::number_of(CUmemoryPool handle) const {
  const auto found = std::find_if(pools.begin(), pools.end(), [handle](const Pool& p) { return p.handle == handle; });
  return found == pools.end() ? kNoPool : found->number;
}

std::string World::name_of(CUmemoryPool handle) const {
  if (!handle) return "none";
  const int number = number_of(handle);
  return number == kNoPool ? "another" : "p" + std::to_string(number);
}

bool World::has_pool(int number) const {
  return std::any_of(pools.begin(), pools.end(), [number](const Pool& p) { return p.number == number; });
}

// Small ones often, edges of the driver's units often, large ones rarely.
std::size_t World::any_size() {
  const std::size_t edges[] = {512, 1024, 4096, 65536, kMiB, 2 * kMiB, 4 * kMiB, 32 * kMiB};
  switch (below(8)) {
    case 0:
    case 1:
      return 1 + below(2000);
    case 2:
    case 3:
      return edges[below(8)] + below(3) - 1;
    default:
      return 1 + (random_() >> (40 + below(24)));  // up to 16 MiB
  }
}

std::string fresh_buffer_id(World& world, Block& block, unsigned long long id) {
  if (block.buffer_id == id) return "same";
  if (block.buffer_id != 0) return "CHANGED";
  block.buffer_id = id;
  return world.buffer_ids_.insert(id).second ? "fresh" : "REUSED";
}

}  // namespace differential
