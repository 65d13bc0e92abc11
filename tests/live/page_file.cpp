// See page_file.h.
#include "tests/live/page_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <new>
#include <stdexcept>

#include "live/identity.h"

namespace gpupool::tests {

PageFile::PageFile(std::uint64_t pools) : bytes_(page_file_bytes(pools)) {
  folder_ = std::filesystem::temp_directory_path() / "gpupool-test-XXXXXX";
  if (!mkdtemp(folder_.data())) throw std::runtime_error("no temporary folder");
  PageIdentity who;
  who.pid = std::uint64_t(getpid());
  who.start_ticks = start_ticks_of(getpid());
  who.pid_namespace = own_pid_namespace();
  who.boot.set(boot_id());
  who.host.set("node1");
  who.rank.set("3");
  who.strategy.set("best_fit");
  who.executable.set("/usr/bin/train");
  path_ = folder_ + "/" + page_name(who, geteuid());
  const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, off_t(bytes_)) != 0) throw std::runtime_error("no page file");
  page_ = new (mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)) Page;
  close(file);
  page_->identity = who;
  describe_layout(*page_);
  for (std::uint64_t i = 0; i < pools; ++i) {
    PoolSlot& slot = *new (&pool(i)) PoolSlot;
    slot.device = i;
    slot.uuid.set("GPU-0");
    slot.card.set("Example GPU");
    slot.state.set(PoolSlot::kServing);
  }
  page_->pool_count = pools;
  page_->magic = kPageMagic;
}

void PageFile::lock() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  file_ = open(path_.c_str(), O_RDWR | O_CLOEXEC);
  if (fcntl(file_, F_SETLK, &lock) != 0) throw std::runtime_error("no lock");
}

PageFile::~PageFile() {
  if (file_ >= 0) close(file_);
  munmap(page_, bytes_);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

}  // namespace gpupool::tests
