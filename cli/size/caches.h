// The frameworks that a run of `size` was seen to load and whose own caches were left on: what such a cache keeps is
// counted as needed. Owned by the verb; looks at files of /proc between two looks at the cards, and only at this user's
// processes.
#pragma once
#include <string>
#include <vector>

#include "cli/launch.h"

namespace gpupool::cli {

class CacheWatch {
 public:
  /// `environment` is the program's; `mark` a text in it that no other process has in its own.
  CacheWatch(const Environment& environment, std::string mark);

  void look(double seconds);
  const std::vector<std::string>& frameworks() const { return seen_; }

 private:
  std::vector<Switch> open_;  // the switches that --unify would set, of frameworks not seen yet
  std::string mark_;
  double next_look_ = 0;
  std::vector<std::string> seen_;
};

}  // namespace gpupool::cli
