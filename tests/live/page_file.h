// A live page as this test process would have written it, in a folder of its own: to be changed, cut, and read.
#pragma once

#include <string>

#include "live/page.h"

namespace gpupool::tests {

class PageFile {
 public:
  explicit PageFile(std::uint64_t pools = 1);
  ~PageFile();
  PageFile(const PageFile&) = delete;
  PageFile& operator=(const PageFile&) = delete;

  /// From now on its process runs, whoever it says it is: the lock is held until the end, or until this process reads
  /// the file.
  void lock();
  const std::string& folder() const { return folder_; }
  const std::string& path() const { return path_; }
  /// Mapped: a store changes the file.
  Page& page() { return *page_; }
  PoolSlot& pool(std::uint64_t number) { return reinterpret_cast<PoolSlot*>(page_ + 1)[number]; }

 private:
  std::string folder_;
  std::string path_;
  std::size_t bytes_ = 0;
  Page* page_ = nullptr;
  int file_ = -1;
};

}  // namespace gpupool::tests
