// The blocks of a recorded trace (pool/trace_format.h), one after another, checked and unpacked. Whatever is whole is
// given out: what is cut off or damaged is left out and noted with its offset, and the next whole block is looked for.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cli/trace/source.h"
#include "pool/trace_format.h"

namespace gpupool::cli {

class TraceBlocks {
 public:
  /// Reads the head of the file; a Problem when it is of another version.
  explicit TraceBlocks(Source& source);

  /// The next whole block; false after the last. A Problem when there has been none at all.
  bool next();
  const TraceBlockHead& head() const { return head_; }
  const std::string& payload() const { return payload_; }
  /// How many next() has given out.
  std::uint64_t count() const { return count_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  bool block();
  void cut_off(std::uint64_t begin);
  void damaged(std::uint64_t begin);

  Source& source_;
  TraceBlockHead head_;
  std::string payload_;
  std::uint64_t count_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace gpupool::cli
