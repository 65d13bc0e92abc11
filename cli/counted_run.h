// A run of a program that is counted: what its processes report at their ends, what they show meanwhile, and what those
// leave that end without a report (os._exit, a signal). All of it goes into a temporary folder of the run's own, so
// that whatever lies there is the program's. Owned by the verb that runs the program; one thread.
#pragma once
#include <string>
#include <vector>

#include "cli/folder.h"
#include "cli/launch.h"
#include "cli/report/file.h"
#include "live/reader.h"

namespace gpupool::cli {

class CountedRun {
 public:
  /// Sends reports and live pages of whatever is started in `environment` to the folder of this run.
  explicit CountedRun(Environment& environment);

  /// A text that stands in the environment of the program's processes, and of no other.
  std::string mark() const { return folder_.path().string(); }
  /// Of the processes that hold device memory now.
  std::vector<PageCopy> pages() const;
  /// Of all processes that used device memory, in the order of their numbers; complete when the program has ended.
  std::vector<ProcessReport> reports() const;

 private:
  Folder folder_;
};

}  // namespace gpupool::cli
