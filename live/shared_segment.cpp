// See shared_segment.h.
#include "live/shared_segment.h"

#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>

#include "live/identity.h"

namespace gpupool {
namespace {

constexpr int kPrivate = 0600;
constexpr std::time_t kForgottenSeconds = 24 * 60 * 60;
void* const kFailed = reinterpret_cast<void*>(-1);

int number_of(const PageLink& link) { return static_cast<int>(link.segment); }

bool is_own(const shmid_ds& segment) {
  return segment.shm_perm.uid == geteuid() && segment.shm_perm.cuid == geteuid() &&
         (segment.shm_perm.mode & 0777) == kPrivate;
}

// Their number is limited, and other programs need them too.
bool has_room() {
  shminfo limits{};
  shm_info used{};
  return shmctl(0, IPC_INFO, reinterpret_cast<shmid_ds*>(&limits)) >= 0 &&
         shmctl(0, SHM_INFO, reinterpret_cast<shmid_ds*>(&used)) >= 0 &&
         std::uint64_t(used.used_ids) < limits.shmmni / 2;
}

}  // namespace

std::optional<PageLink> read_link(int file) {
  constexpr PageLink kAny;
  PageLink link;
  struct stat info {};
  const bool whole = fstat(file, &info) == 0 && info.st_size == off_t{sizeof link} &&
                     pread(file, &link, sizeof link, 0) == ssize_t{sizeof link};
  return whole && link.magic == kAny.magic && link.version == kAny.version ? std::optional(link) : std::nullopt;
}

SharedSegment::SharedSegment(const PageLink& link, Access access) : number_(link.segment) {
  if (link.ipc_namespace != own_ipc_namespace() || number_of(link) != link.segment) return;
  shmid_ds info{};
  gone_ = shmctl(number_of(link), IPC_STAT, &info) != 0;
  if (gone_ || !is_own(info) || info.shm_segsz < sizeof(Page)) return;
  void* memory = shmat(number_of(link), nullptr, access == Access::kRead ? SHM_RDONLY : 0);
  if (memory == kFailed) return;
  page_ = static_cast<Page*>(memory);
  bytes_ = info.shm_segsz;
  if (page_->identity.started_ns == link.started_ns) return;
  shmdt(page_);
  page_ = nullptr;
  gone_ = true;
}

SharedSegment::~SharedSegment() {
  if (page_) shmdt(page_);
}

void SharedSegment::remove() const {
  if (page_) shmctl(static_cast<int>(number_), IPC_RMID, nullptr);
}

bool takes_segments(const std::string& folder) {
  struct stat pages {};
  struct stat shared {};
  return stat(folder.c_str(), &pages) == 0 && stat("/dev/shm", &shared) == 0 && pages.st_dev == shared.st_dev;
}

std::optional<PageLink> move_to_segment(Page& page, std::uint64_t bytes) {
  if (!has_room()) return std::nullopt;
  const int number = shmget(IPC_PRIVATE, bytes, IPC_CREAT | IPC_EXCL | SHM_NORESERVE | kPrivate);
  if (number < 0) return std::nullopt;
  void* elsewhere = shmat(number, nullptr, 0);
  if (elsewhere != kFailed) {
    std::copy_n(reinterpret_cast<const char*>(&page), sizeof(Page), static_cast<char*>(elsewhere));
    const bool moved = shmat(number, &page, SHM_REMAP) != kFailed;
    shmdt(elsewhere);
    if (moved)
      return PageLink{.segment = number, .ipc_namespace = own_ipc_namespace(), .started_ns = page.identity.started_ns};
  }
  shmctl(number, IPC_RMID, nullptr);
  return std::nullopt;
}

void remove_segment(const PageLink& link) { shmctl(number_of(link), IPC_RMID, nullptr); }

void remove_forgotten_segments(std::uint64_t bytes) {
  shm_info used{};
  const int last = shmctl(0, SHM_INFO, reinterpret_cast<shmid_ds*>(&used));
  for (int index = 0; index <= last; ++index) {
    shmid_ds info{};
    const int number = shmctl(index, SHM_STAT, &info);
    if (number < 0 || !is_own(info) || info.shm_nattch != 0 || info.shm_segsz != bytes) continue;
    if (std::time(nullptr) - std::max(info.shm_dtime, info.shm_ctime) > kForgottenSeconds)
      shmctl(number, IPC_RMID, nullptr);
  }
}

}  // namespace gpupool
