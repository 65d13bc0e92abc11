// See reader.h.
#include "live/reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "live/identity.h"
#include "live/shared_segment.h"

namespace gpupool {
namespace {

class File {
 public:
  explicit File(const std::string& path, int mode)
      : number_(open(path.c_str(), mode | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {}
  ~File() {
    if (number_ >= 0) close(number_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  bool ok() const { return number_ >= 0; }
  int number() const { return number_; }

 private:
  int number_;
};

// The bytes of a page: its file's, or those of the segment that its file names.
class Content {
 public:
  explicit Content(int file) : file_(file) {
    struct stat info {};
    if (fstat(file, &info) == 0) bytes_ = static_cast<std::uint64_t>(info.st_size);
    if (const std::optional<PageLink> link = read_link(file)) {
      segment_.emplace(*link, SharedSegment::Access::kRead);
      bytes_ = segment_->bytes();
    }
  }
  const std::optional<SharedSegment>& segment() const { return segment_; }
  std::uint64_t bytes() const { return bytes_; }

  /// Up to `bytes` from `at`; what is not there stays as it is.
  void copy_out(std::uint64_t at, void* to, std::size_t bytes) const {
    if (segment_) {
      const auto* from = reinterpret_cast<const char*>(segment_->page());
      if (from && at <= bytes_)
        std::copy_n(from + at, std::min<std::uint64_t>(bytes, bytes_ - at), static_cast<char*>(to));
      return;
    }
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t got = pread(file_, static_cast<char*>(to) + done, bytes - done, static_cast<off_t>(at + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return;
      done += static_cast<std::size_t>(got);
    }
  }

 private:
  int file_;
  std::uint64_t bytes_ = 0;
  std::optional<SharedSegment> segment_;
};

bool is_private(const struct stat& info) {
  return S_ISREG(info.st_mode) && info.st_uid == geteuid() && (info.st_mode & 077) == 0;
}

// The writer's words by the names that it gave them, in our order. A row that it does not have is 0.
void translate(const Page& page, const std::vector<std::uint64_t>& words, Stats& stats) {
  const auto word = [&](std::string_view name) -> std::uint64_t {
    const std::uint64_t count = std::min<std::uint64_t>(page.stat_count, kMostStats);
    for (std::uint64_t i = 0; i < count; ++i) {
      if (page.stat_names[i].get() == name) return words[i];
    }
    return 0;
  };
#define GAUGE(name, unit, sentence)    \
  stats.name.set(word(#name ".peak")); \
  stats.name.set(word(#name));
#define COUNTER(name, unit, sentence) stats.name.set(word(#name));
#include "pool/stats.def"
#undef GAUGE
#undef COUNTER
}

std::unique_ptr<PoolSlot> read_pool(const Content& content, const Page& page, std::uint64_t number) {
  auto pool = std::make_unique<PoolSlot>();
  content.copy_out(page_file_bytes(number), static_cast<void*>(pool.get()), sizeof(PoolSlot));
  std::vector<std::uint64_t> words(kMostStats);
  static_assert(sizeof(PoolSlot) - offsetof(PoolSlot, stats) == kMostStats * sizeof(std::uint64_t));
  std::memcpy(words.data(), static_cast<const void*>(&pool->stats), kMostStats * sizeof(std::uint64_t));
  translate(page, words, pool->stats);
  return pool;
}

// The lock that a writer holds is gone with it. Where it was lost otherwise (a program that closes every descriptor),
// the process itself is looked for, as far as it can be seen from here.
Life life_of(int file, const PageIdentity& who) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(file, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK) return Life::kRunning;
  const bool visible = who.boot.get() == boot_id() && who.pid_namespace == own_pid_namespace();
  return visible && start_ticks_of(static_cast<pid_t>(who.pid)) == who.start_ticks ? Life::kRunning : Life::kGone;
}

std::uint64_t monotonic_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::uint64_t(now.tv_sec) * 1000 + std::uint64_t(now.tv_nsec) / 1'000'000;
}

// What no writer leaves: a file without the pools that it counts, more entries than there is room for.
std::string flaw_of(const Page& page, std::uint64_t bytes) {
  const std::uint64_t pools = page.pool_count.load();
  const bool fits = pools <= Page::kMostPools && page.stat_count <= kMostStats && page.call_count <= Page::kMostCalls &&
                    page.curve.count.load() <= PageCurve::kMostPoints;
  if (!fits) return "is damaged: it counts more entries than a page has; what it says may be wrong";
  if (bytes >= page_file_bytes(pools)) return "";
  const std::uint64_t left = (bytes - sizeof(Page)) / sizeof(PoolSlot);
  return "is cut short: of its " + std::to_string(pools) + (pools == 1 ? " pool" : " pools") + " the numbers of " +
         std::to_string(pools - left) + " are missing";
}

}  // namespace

std::vector<const PoolSlot*> PageCopy::slots() const {
  std::vector<const PoolSlot*> all;
  for (const auto& pool : pools) all.push_back(pool.get());
  return all;
}

std::optional<PageCopy> read_page(const std::string& path, std::string& problem) {
  const File file(path, O_RDONLY);
  if (!file.ok()) {
    if (errno != ENOENT) problem = std::strerror(errno);
    return std::nullopt;
  }
  struct stat info {};
  if (fstat(file.number(), &info) != 0 || !is_private(info)) {
    problem = "is not a file of this user alone";
    return std::nullopt;
  }
  PageCopy copy;
  copy.path = path;
  copy.inode = info.st_ino;
  copy.page = std::make_unique<Page>();
  Page& page = *copy.page;
  page.version = 0;
  const Content content(file.number());
  content.copy_out(0, static_cast<void*>(&page), sizeof(Page));
  copy.life = life_of(file.number(), page.identity);
  if (content.segment() && !content.segment()->page() && !content.segment()->is_gone()) {
    problem = "names memory of another IPC namespace";
    return std::nullopt;
  }
  if (content.bytes() < sizeof(Page) && page.magic.load() == kPageMagic) {
    problem = "is cut short: " + std::to_string(content.bytes()) + " bytes are left of " + std::to_string(sizeof(Page));
    return std::nullopt;
  }
  if (page.magic.load() == 0) {
    // Its writer is about to say more, or was killed before it could: then it is an empty page, once it is old enough.
    constexpr time_t kSettled = 10;
    if (copy.life == Life::kRunning || time(nullptr) - info.st_mtime < kSettled) return std::nullopt;
    copy.page = std::make_unique<Page>();
    return copy;
  }
  if (page.magic.load() != kPageMagic) {
    problem = "is no page of gpupool";
    return std::nullopt;
  }
  if (page.version != kPageVersion) {
    problem = "is a page of version " + std::to_string(page.version) + "; this command reads version " +
              std::to_string(kPageVersion);
    return std::nullopt;
  }
  if (page.page_bytes != sizeof(Page) || page.pool_bytes != sizeof(PoolSlot)) {
    problem = "does not have the layout of its version";
    return std::nullopt;
  }
  const std::uint64_t pools = std::min<std::uint64_t>(page.pool_count.load(), Page::kMostPools);
  copy.flaw = flaw_of(page, content.bytes());
  for (std::uint64_t i = 0; i < pools && page_file_bytes(i + 1) <= content.bytes(); ++i)
    copy.pools.push_back(read_pool(content, page, i));
  if (copy.life == Life::kRunning) {
    const std::uint64_t started = page.identity.started_ns / 1'000'000;
    if (monotonic_ms() > started) page.seen_ms.set(monotonic_ms() - started);
  }
  return copy;
}

PagesFound find_pages(const std::string& folder, const std::string& except) {
  PagesFound found;
  DIR* listing = opendir(folder.c_str());
  if (listing == nullptr) {
    if (!folder.empty()) found.problems.push_back(folder + ": " + std::strerror(errno));
    return found;
  }
  const std::string start = page_name_start(geteuid());
  while (const dirent* entry = readdir(listing)) {
    const std::string name = entry->d_name;
    if (!name.starts_with(start) || name == except) continue;
    std::string problem;
    const std::string path = folder + "/" + name;
    if (std::optional<PageCopy> copy = read_page(path, problem)) {
      problem = copy->flaw;
      found.pages.push_back(std::move(*copy));
    }
    if (!problem.empty()) found.problems.push_back(path + ": " + problem);
  }
  closedir(listing);
  std::ranges::sort(found.pages, {}, [](const PageCopy& copy) { return copy.page->identity.pid; });
  return found;
}

std::optional<std::uint64_t> live_now(const PageCopy& copy) {
  const File file(copy.path, O_RDONLY);
  if (!file.ok()) return std::nullopt;
  const Content content(file.number());
  const auto word = [&](std::uint64_t at) {
    std::uint64_t value = 0;
    content.copy_out(at, &value, sizeof value);
    return value;
  };
  const Page& page = *copy.page;
  std::uint64_t live = word(offsetof(Page, passed));
  std::uint64_t number = 0;
  const std::uint64_t count = std::min<std::uint64_t>(page.stat_count, kMostStats);
  while (number < count && page.stat_names[number].get() != "live") ++number;
  if (number == count) return live;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(word(offsetof(Page, pool_count)), Page::kMostPools); ++i)
    live += word(page_file_bytes(i) + offsetof(PoolSlot, stats) + number * sizeof(std::uint64_t));
  return live;
}

// The lock of the writer is free now: whoever takes it owns what is left, if that is still what was read.
bool claim_page(const PageCopy& copy) {
  const File file(copy.path, O_RDWR);
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  struct stat ours {};
  struct stat named {};
  if (!file.ok() || fcntl(file.number(), F_SETLK, &lock) != 0 || fstat(file.number(), &ours) != 0) return false;
  if (lstat(copy.path.c_str(), &named) != 0 || named.st_ino != ours.st_ino || named.st_dev != ours.st_dev) return false;
  if (ours.st_ino != copy.inode) return false;
  const Content content(file.number());
  if (unlink(copy.path.c_str()) != 0) return false;
  if (content.segment()) content.segment()->remove();
  return true;
}

}  // namespace gpupool
