// See page.h.
#include "preload/real.h"

#include "preload/page.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <new>
#include <utility>

#include "config/text.h"
#include "live/identity.h"
#include "live/write_all.h"
#include "preload/log.h"
#include "preload/process.h"
#include "preload/watch.h"

namespace gpupool {
namespace {

constexpr std::uint64_t kWholeFile = page_file_bytes(Page::kMostPools);

std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::uint64_t(now.tv_sec) * 1'000'000'000 + std::uint64_t(now.tv_nsec);
}

bool takes_memory(HookRow row) {
  return kHooks[row].kind == HookKind::POOL || (kHooks[row].kind == HookKind::WATCH && !takes_host_memory(row));
}

// Held for the life of the process; see the top of page.h.
bool lock_whole(int file) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return fcntl(file, F_SETLK, &lock) == 0;
}

}  // namespace

OwnPage::OwnPage(std::uint64_t started_ns) {
  void* memory = mmap(nullptr, kWholeFile, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  page_ = new (memory) Page;
  pools_ = reinterpret_cast<PoolSlot*>(page_ + 1);
  page_->identity.started_ns = started_ns;
}

void OwnPage::publish(const std::string& folder) {
  if (asked_) return;
  asked_ = true;
  describe(*page_);
  if (folder.empty() || make_file(folder)) return;
  const int error = errno;
  log::info("no live page in " + escaped(folder) + " (" + std::strerror(error) +
            "): gpupool top does not show this process, and being killed leaves no report");
}

// A name is taken when this very process had a page before it called exec.
bool OwnPage::make_file(const std::string& folder) {
  constexpr int kMostImages = 64;
  const std::string stem = page_name(page_->identity, geteuid());
  int file = -1;
  for (int image = 0; file < 0 && image < kMostImages; ++image) {
    name_ = image == 0 ? stem : stem + "-" + std::to_string(image);
    path_ = folder + "/" + name_;
    file = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0 && errno != EEXIST) break;
  }
  folder_ = folder;
  if (file >= 0 && (take_segment(file) || take_over(file))) return true;
  const int error = errno;
  if (file >= 0) {
    unlink(path_.c_str());
    close(file);
  }
  name_.clear();
  errno = error;
  return false;
}

// From private memory to a segment, at the same address. The file keeps the lock, and is open for it.
bool OwnPage::take_segment(int file) {
  if (!takes_segments(folder_) || fchmod(file, 0600) != 0 || !lock_whole(file)) return false;
  remove_forgotten_segments(kWholeFile);
  segment_ = move_to_segment(*page_, kWholeFile);
  if (!segment_) return false;
  if (!write_all(file, {reinterpret_cast<const char*>(&*segment_), sizeof *segment_})) {
    remove_segment(*std::exchange(segment_, std::nullopt));
    return false;
  }
  page_->magic.store(kPageMagic, std::memory_order_release);
  return true;
}

// From private memory to the file, at the same address. What another thread counts in this moment may be lost to the
// calls that went past the pool; no pool exists yet.
bool OwnPage::take_over(int file) {
  if (fchmod(file, 0600) != 0 || !lock_whole(file)) return false;
  if (const int error = posix_fallocate(file, 0, sizeof(Page)); error != 0) {
    errno = error;
    return false;
  }
  if (ftruncate(file, kWholeFile) != 0 || pwrite(file, page_, sizeof(Page), 0) != ssize_t{sizeof(Page)}) return false;
  if (mmap(page_, kWholeFile, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) return false;
  file_ = file;
  page_->magic.store(kPageMagic, std::memory_order_release);
  return true;
}

PoolSlot& OwnPage::new_pool() {
  const std::uint64_t count = page_->pool_count.load(std::memory_order_relaxed);
  const bool room = count < Page::kMostPools;
  if (room && (file_ < 0 || posix_fallocate(file_, off_t(page_file_bytes(count)), sizeof(PoolSlot)) == 0)) {
    PoolSlot* fresh = new (pools_ + count) PoolSlot;
    page_->pool_count.store(count + 1, std::memory_order_release);
    return *fresh;
  }
  return *elsewhere_.emplace_back(std::make_unique<PoolSlot>());
}

void OwnPage::note_time() { page_->seen_ms.set((monotonic_ns() - page_->identity.started_ns) / 1'000'000); }

// The mapping and the descriptor stay: other threads still count, and the lock tells readers not to take a page whose
// name they have just read for one that was left behind.
void OwnPage::remove() {
  if (!name_.empty()) unlink(path_.c_str());
  if (segment_) remove_segment(*segment_);
}

void describe(Page& page) {
  describe_layout(page);
  const pid_t pid = getpid();
  PageIdentity& who = page.identity;
  who.pid = std::uint64_t(pid);
  who.start_ticks = start_ticks_of(pid);
  who.pid_namespace = own_pid_namespace();
  who.boot.set(boot_id());
  who.host.set(expand_path("%h", pid));
  who.rank.set(expand_path("%r", pid));
  who.strategy.set(to_text(setup().options.pool.strategy));
  who.version.set(GPUPOOL_VERSION);
  who.executable.set(setup().executable);
  page.call_count = kHookRows;
  for (unsigned row = 0; row < kHookRows; ++row) {
    page.calls[row].name.set(kHooks[row].symbol);
    page.calls[row].device_memory = takes_memory(HookRow(row)) ? 1 : 0;
  }
}

}  // namespace gpupool
