// Which processes of a run were seen to have the driver and the front in them: a process that has the driver and from
// which nothing arrives uses it past the preload. Owned by the check; looks at files of /proc a few times a second, so
// that processes of a moment are missed.
#pragma once
#include <map>
#include <string>

namespace gpupool::cli {

class DriversSeen {
 public:
  struct Process {
    std::string executable;
    bool has_front = false;
  };
  /// `mark` is in the environment of the run's processes.
  explicit DriversSeen(std::string mark) : mark_(std::move(mark)) {}

  void look(double seconds);
  /// Those with the driver, by number.
  const std::map<int, Process>& processes() const { return processes_; }

 private:
  std::string mark_;
  double next_look_ = 0;
  std::map<int, Process> processes_;
};

}  // namespace gpupool::cli
