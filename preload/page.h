// This process's live page (live/page.h), as its writer. Until the first pool it is private memory, so that forks and
// programs without device memory cost nothing; then it becomes shared memory at the same address: a segment that a file
// in /dev/shm names (live/shared_segment.h), or in any other folder the file itself. Where that cannot be had (no such
// folder, full, read-only, no descriptor), it stays private and one line says so. Owned by Process; publish() and
// new_pool() are called under the registry's lock, the rest from anywhere.
//
// A file's space is taken before it is written to, because a store to a page that a full file system cannot back
// would end the program. A lock on the file says that the process lives: the kernel gives it up with the process,
// whatever ends it, and a child of fork does not inherit it. So this process must never open its own file again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "live/page.h"
#include "live/shared_segment.h"

namespace gpupool {

class OwnPage {
 public:
  /// `started_ns`: CLOCK_MONOTONIC now.
  explicit OwnPage(std::uint64_t started_ns);
  OwnPage(const OwnPage&) = delete;
  OwnPage& operator=(const OwnPage&) = delete;

  Page& page() { return *page_; }
  /// The name of its file; empty while it has none.
  const std::string& name() const { return name_; }
  const std::string& folder() const { return folder_; }
  /// Whether there is no file and never will be.
  bool refused() const { return asked_ && name_.empty(); }

  /// Makes the file in `folder`, once; an empty folder makes none.
  void publish(const std::string& folder);
  /// A fresh slot; in private memory when the file has no room for it.
  PoolSlot& new_pool();
  /// Keeps the time: when it stops, the report of a killed process knows how long it ran.
  void note_time();
  /// The process ends: nobody needs the file any more. What is in memory stays.
  void remove();

 private:
  bool make_file(const std::string& folder);
  bool take_over(int file);
  bool take_segment(int file);

  Page* page_ = nullptr;
  PoolSlot* pools_ = nullptr;
  bool asked_ = false;
  int file_ = -1;                    // where the page lies
  std::optional<PageLink> segment_;  // or this
  std::string folder_;
  std::string name_;
  std::string path_;  // kept whole: at the end of the process there may be no memory to put it together
  std::vector<std::unique_ptr<PoolSlot>> elsewhere_;
};

/// Fills in who the process is and what the page's words are. For publish(), and for a report without it.
void describe(Page& page);

}  // namespace gpupool
