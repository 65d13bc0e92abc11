// The way of records from the program's threads into a file: a ring, and a thread of our own that empties it, packs
// full or old batches and writes them. A killed process loses what is younger than kFlushMs. Whatever is wrong with the
// disk is said once in the log; the program goes on, and what is lost is counted in the next block that can be written.
// push() is for any thread; the rest belongs to the recorder.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "preload/trace_clock.h"
#include "preload/trace_file.h"
#include "preload/trace_ring.h"

namespace gpupool {

class TraceWriter {
 public:
  /// Lines of text (pool/trace_format.h) about the pools from number `from` on; raises it behind the last.
  using PoolText = std::function<std::string(unsigned& from)>;

  static constexpr unsigned kWakeMs = 10;
  static constexpr unsigned kFlushMs = 100;
  static constexpr std::size_t kBatch = std::size_t{1} << 14;  // records in a block, at most

  /// Starts the thread. `text` begins the file, after the fixed head.
  TraceWriter(std::string path, std::string text, PoolText pools);
  ~TraceWriter();

  void push(TraceRecord& record) {
    record.ticks = clock_.ticks();
    ring_.push(record);
  }

  /// Writes what there is and ends the thread.
  void finish();
  /// In the child of a fork, where there is no thread and the file is the parent's.
  void disown() { file_.disown(); }

  /// Records that reached the file, and that did not.
  std::uint64_t written() const { return written_; }
  std::uint64_t dropped() const { return ring_.dropped() + lost_; }
  const std::string& path() const { return file_.path(); }

 private:
  void run();
  bool drain();
  void append_text();
  void write_batch();
  struct Moment {
    std::uint64_t ticks;
    std::uint64_t ns;
  };
  Moment now() const;
  bool append(TraceBlockKind kind, std::uint32_t count, Moment moment, std::span<const unsigned char> payload);
  void complain(const char* doing, int error);

  const std::string wanted_path_;
  std::string text_;  // not written yet
  const PoolText pools_;
  TraceClock clock_;
  const Moment began_;
  TraceRing ring_;
  TraceFile file_;
  std::vector<TraceRecord> batch_;
  std::vector<unsigned char> payload_;
  std::uint64_t batch_began_ns_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t lost_ = 0;
  unsigned pools_told_ = 0;
  bool complained_ = false;
  std::atomic<std::uint32_t> stop_{0};  // 1: the thread shall end; a futex
  std::thread thread_;
};

}  // namespace gpupool
