// While `size` waits for its program: a line on the terminal that says how far it is, what the cards were seen to hold,
// and the end after --seconds. Owned by the verb; called every fraction of a second by run_and_wait().
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/cards.h"
#include "config/bytes.h"

namespace gpupool::cli {

class RunWatch {
 public:
  /// `most_seconds`: when the program is asked to end.
  explicit RunWatch(std::optional<double> most_seconds);

  /// Looks, and returns the signal that the program is to get now; 0: none.
  int look(double seconds);
  /// Ends the line.
  void finish();

  bool stopped() const { return stopped_; }
  /// The most that the cards held at once beyond what they held at the beginning.
  Bytes used_peak() const { return peak_; }
  /// The card that was used most, or the first; null where none is seen.
  const Card* card() const;

 private:
  std::optional<double> most_seconds_;
  bool shows_;
  bool stopped_ = false;
  unsigned signals_ = 0;
  double next_look_ = 0;
  std::size_t shown_ = 0;  // columns of the line
  Bytes used_ = 0;
  Bytes peak_ = 0;
  std::vector<Card> before_;
  std::vector<Bytes> grown_;  // of each card, at its peak
};

}  // namespace gpupool::cli
