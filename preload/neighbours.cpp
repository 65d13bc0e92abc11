// See neighbours.h.
#include "preload/real.h"

#include "preload/neighbours.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>

#include "config/text.h"
#include "device/card.h"
#include "live/mailbox.h"
#include "live/reader.h"
#include "preload/boundary.h"
#include "preload/log.h"
#include "preload/process.h"
#include "preload/quiet_thread.h"
#include "preload/serve.h"

namespace gpupool {
namespace {

constexpr std::chrono::milliseconds kPatience{2000};  // for one neighbour
// What is asked for at least: the largest piece that pools are made of, so that a neighbour can give it without
// emptying itself, and a process that grows in small steps need not ask for each.
constexpr std::uint64_t kStep = 128_MiB;

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

// What a process would give on a card: the pieces of its pools in which there is no block.
std::uint64_t free_in(const PageCopy& copy, const std::string& uuid) {
  std::uint64_t sum = 0;
  if (copy.life != Life::kRunning) return sum;
  for (const PoolSlot* pool : copy.slots()) {
    if (pool->state.get() != PoolSlot::kServing || pool->uuid.get() != uuid) continue;
    const std::uint64_t reserved = pool->stats.reserved.current();
    sum += reserved - std::min(reserved, pool->stats.needed.current());
  }
  return sum;
}

}  // namespace

void Neighbours::start() {
  if (page_.name().empty() || thread_.joinable()) return;
  try {
    thread_ = quiet_thread([this] {
      const Guard guard;
      Mailbox& box = page_.page().mailbox;
      while (!stop_.load(std::memory_order_acquire)) {
        const std::uint32_t heard = box.bell.load(std::memory_order_acquire);
        answer_letters(box, [&](const GiveBack& request) -> std::uint64_t {
          try {
            return give_memory_back(guard, request.uuid, request.want, request.keep);
          } catch (const std::bad_alloc&) {
            out_of_host_memory();
            return 0;
          }
        });
        if (!stop_.load(std::memory_order_acquire)) wait_for_bell(box, heard);
      }
    });
    page_.page().mailbox.open.store(1, std::memory_order_release);
  } catch (const std::exception&) {
    log::info("no thread to answer neighbours on the card: their requests for memory fail");
  }
}

void Neighbours::stop() {
  stop_.store(true, std::memory_order_release);
  if (!thread_.joinable()) return;
  page_.page().mailbox.open.store(0, std::memory_order_release);
  ring(page_.page().mailbox);
  thread_.join();
}

std::uint64_t Neighbours::ask(const Guard&, const std::string& uuid, std::uint64_t least, std::uint64_t wanted) try {
  if (page_.name().empty() || uuid.empty()) return 0;
  struct Neighbour {
    std::string path;
    std::uint64_t free;
  };
  std::vector<Neighbour> neighbours;
  std::uint64_t sum = 0;
  for (const PageCopy& copy : find_pages(page_.folder(), page_.name()).pages) {
    const std::uint64_t free = free_in(copy, uuid);
    if (free == 0) continue;
    neighbours.push_back({copy.path, free});
    sum += free;
  }
  if (sum < least) return 0;
  std::ranges::sort(neighbours, std::greater{}, &Neighbour::free);
  std::uint64_t given = 0;
  for (const Neighbour& neighbour : neighbours) {
    if (given >= wanted) break;
    given += ask_for_memory(neighbour.path, {uuid, round_up(wanted - given, kStep), 0}, kPatience).given;
  }
  if (log::enabled(LogLevel::info)) {
    log::info("asked for " + readable(wanted) + " on " + uuid + "; other processes gave back " + readable(given));
  }
  return given;
} catch (const std::bad_alloc&) {
  return 0;
}

std::uint64_t Neighbours::free_on(const Guard&, const std::string& uuid) const try {
  const std::string& folder = setup().options.stats.pages;
  std::string own;
  {
    const auto held = process().registry.hold();  // nobody publishes the page meanwhile
    if (folder.empty() || uuid.empty() || page_.refused()) return 0;
    own = page_.name();
  }
  std::uint64_t sum = 0;
  for (const PageCopy& copy : find_pages(folder, own).pages) {
    if (copy.page->mailbox.open.load(std::memory_order_relaxed) != 0) sum += free_in(copy, uuid);
  }
  return sum;
} catch (const std::bad_alloc&) {
  return 0;
}

bool ask_neighbours(const Guard& guard, const Home& home, std::uint64_t bytes) {
  const ResolvedPool& pool = home.resolved();
  const std::uint64_t reserved = home.tape()->stats().reserved.current();
  if (reserved + bytes > pool.max) return false;
  const CardMemory card = card_memory_of(setup().api, home.context());
  const std::uint64_t wanted = round_up(bytes, kHandleGranularity) + pool.headroom;
  if (card.free >= wanted) return false;  // it was not for lack of memory on the card
  // What the pool has free itself may have been of no use, or of some.
  const std::uint64_t least = wanted - std::min(wanted, card.free + home.tape()->free_bytes());
  return process().neighbours.ask(guard, home.uuid(), least, wanted - card.free) != 0;
}

bool ask_neighbours(const Guard& guard, std::uint64_t bytes) {
  const DriverApi& api = setup().api;
  CUdevice device = 0;
  std::size_t free = 0;
  std::size_t total = 0;
  if (api.cuCtxGetDevice(&device) != CUDA_SUCCESS || api.cuMemGetInfo_v2(&free, &total) != CUDA_SUCCESS) return false;
  const std::uint64_t needed = std::max(bytes, kStep) + kDriverSlack;
  if (needed > total || needed <= free) return false;
  return process().neighbours.ask(guard, uuid_text(api, device), needed - free, needed - free) != 0;
}

}  // namespace gpupool
