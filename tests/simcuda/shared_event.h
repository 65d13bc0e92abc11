// An event that several processes know: how often it was recorded, and which record is done, in a page that all of them
// map. A waiter's stream looks at the page, as it does at a flag in memory.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>

namespace gpupool::sim {

class SharedEvent {
 public:
  // Fresh, in a file of this process; null when there is none to be had.
  static std::shared_ptr<SharedEvent> make();
  // The one that another process, or this one, has named.
  static std::shared_ptr<SharedEvent> open(const CUipcEventHandle& handle);
  ~SharedEvent();
  SharedEvent(const SharedEvent&) = delete;
  SharedEvent& operator=(const SharedEvent&) = delete;

  CUipcEventHandle handle() const;
  // The number of a record that is queued now, and its end.
  uint64_t record() { return ++page_->recorded; }
  void complete(uint64_t number);
  uint64_t last_record() const { return page_->recorded; }
  bool is_done(uint64_t number) const { return page_->done >= number; }

 private:
  struct Page {
    std::atomic<uint64_t> recorded;
    std::atomic<uint64_t> done;
  };
  SharedEvent(int file, Page* page) : file_(file), page_(page) {}
  static std::shared_ptr<SharedEvent> map(int file);

  int file_;
  Page* page_;
};

}  // namespace gpupool::sim
