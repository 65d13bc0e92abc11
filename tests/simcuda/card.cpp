// See card.h. The shared file is a table: one slot per card and process.
#include "tests/simcuda/card.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "tests/simcuda/settings.h"

namespace gpupool::sim {
namespace {

constexpr int kCards = 16;
constexpr int kProcesses = 64;

struct Slot {
  int32_t process;
  uint64_t used;
};

struct Table {
  Slot slots[kCards][kProcesses];
};

struct Shared {
  int file = -1;
  Table* table = nullptr;
};

Shared& shared() {
  static Shared* const instance = [] {
    auto* made = new Shared;
    const std::string& path = settings().card_path;
    if (path.empty()) return made;
    made->file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void* mapped = MAP_FAILED;
    if (made->file >= 0 && ftruncate(made->file, sizeof(Table)) == 0)
      mapped = mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED, made->file, 0);
    if (mapped == MAP_FAILED) {
      std::perror("simcuda: GPUPOOL_SIM_CARD");
      std::abort();
    }
    made->table = static_cast<Table*>(mapped);
    return made;
  }();
  return *instance;
}

class FileLock {
 public:
  FileLock() { flock(shared().file, LOCK_EX); }
  ~FileLock() { flock(shared().file, LOCK_UN); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
};

bool is_alive(int32_t process) { return kill(process, 0) == 0 || errno == EPERM; }

// What other living processes hold; slots of dead ones are emptied on the way.
uint64_t taken_by_others(int ordinal) {
  uint64_t sum = 0;
  for (Slot& slot : shared().table->slots[ordinal]) {
    if (slot.process == 0 || slot.process == getpid()) continue;
    if (is_alive(slot.process)) {
      sum += slot.used;
    } else {
      slot = Slot{};
    }
  }
  return sum;
}

void publish(int ordinal, uint64_t used) {
  Slot* free = nullptr;
  for (Slot& slot : shared().table->slots[ordinal]) {
    if (slot.process == getpid()) free = &slot;
    if (slot.process == 0 && !free) free = &slot;
  }
  if (!free) {
    std::fprintf(stderr, "simcuda: more than %d processes share a card\n", kProcesses);
    std::abort();
  }
  *free = Slot{getpid(), used};
}

}  // namespace

void Card::open(int ordinal, uint64_t total) {
  ordinal_ = ordinal;
  total_ = total;
  if (shared().table && ordinal >= kCards) {
    std::fprintf(stderr, "simcuda: at most %d cards are shared\n", kCards);
    std::abort();
  }
}

uint64_t Card::used() const {
  if (!shared().table) return mine_;
  const FileLock lock;
  return mine_ + taken_by_others(ordinal_);
}

bool Card::take(uint64_t bytes) {
  if (!shared().table) {
    if (bytes > total_ - mine_) return false;
    mine_ += bytes;
    return true;
  }
  const FileLock lock;
  if (bytes > total_ - mine_ - taken_by_others(ordinal_)) return false;
  mine_ += bytes;
  publish(ordinal_, mine_);
  return true;
}

void Card::give(uint64_t bytes) {
  mine_ -= bytes;
  if (!shared().table) return;
  const FileLock lock;
  publish(ordinal_, mine_);
}

}  // namespace gpupool::sim
