// The live pages that killed processes have left behind, as reports. They are removed when their reports have been
// shown or written, and not before: a reader that fails on the way leaves them to the next.
#pragma once
#include <string>
#include <vector>

#include "cli/report/file.h"
#include "live/reader.h"

namespace gpupool::cli {

class Leftovers {
 public:
  /// Reads them all, and appends the reports of those that used device memory.
  void find(std::vector<ProcessReport>& reports);
  /// One file each, gpupool-PID.json, with a suffix where the name is taken. Throws a Problem.
  void write(const std::string& folder) const;
  void remove() const;

 private:
  std::vector<PageCopy> gone_;
};

}  // namespace gpupool::cli
