// The file of a trace, as pool/trace_format.h describes it: created under a name that nobody has, never through a link,
// for its owner only; blocks are appended and never changed. A block that cannot be written is taken back as a whole.
// Used by the recorder's writer alone; no exceptions but for lack of host memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pool/trace_format.h"

namespace gpupool {

class TraceFile {
 public:
  TraceFile();
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  /// Under `path`, or with a suffix where that is taken by a file. False: errno says why.
  bool create(const std::string& path);
  const std::string& path() const { return path_; }

  /// Appends a block; `head` needs kind, count, dropped and the clocks. False: errno says why, and the file is as
  /// before.
  bool append(TraceBlockHead head, std::span<const unsigned char> payload);

  /// In the child of a fork: the file is the parent's.
  void disown();

 private:
  struct Packer;

  int file_ = -1;
  std::string path_;
  std::uint64_t end_ = 0;  // of the last complete block
  std::uint32_t blocks_ = 0;
  std::unique_ptr<Packer> packer_;
  std::vector<unsigned char> packed_;
};

}  // namespace gpupool
