// While `size` waits for its program: a line on the terminal that says how far it is, what the cards were seen to hold,
// and the end after --seconds or --steps. Owned by the verb; called every fraction of a second by run_and_wait().
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/cards.h"
#include "cli/counted_run.h"
#include "cli/size/steps.h"
#include "config/bytes.h"

namespace gpupool::cli {

/// When the program is asked to end; by default never.
struct RunLimits {
  std::optional<double> seconds;
  std::optional<unsigned> steps;
};

class RunWatch {
 public:
  RunWatch(const CountedRun& run, RunLimits limits);

  /// Looks, and returns the signal that the program is to get now; 0: none.
  int look(double seconds);
  /// Ends the line.
  void finish();

  /// The option that ended the program; empty while none has.
  const std::string& stopped_by() const { return stopped_by_; }
  /// The most that the cards held at once beyond what they held at the beginning.
  Bytes used_peak() const { return cards_peak_; }
  /// The card that was used most, or the first; null where none is seen.
  const Card* card() const;

 private:
  void look_at_cards();
  void look_at_processes();
  void show(double seconds);
  bool is_over(double seconds);

  const CountedRun& run_;
  const RunLimits limits_;
  const bool shows_;
  double next_look_ = 0;
  std::size_t shown_ = 0;  // columns of the line
  std::string stopped_by_;
  double stopped_at_ = 0;
  unsigned signals_ = 0;
  Bytes live_ = 0;  // of all processes now
  Bytes reserved_ = 0;
  Bytes need_ = 0;  // the largest of a pool, or of a process that the driver serves
  std::size_t processes_ = 0;
  std::map<std::string, Steps> steps_;  // of each process, by its page
  unsigned most_steps_ = 0;
  Bytes cards_peak_ = 0;
  std::vector<Card> before_;
  std::vector<Bytes> grown_;  // of each card, at its peak
};

}  // namespace gpupool::cli
