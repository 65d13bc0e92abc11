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
  /// What a process needs of a card beyond the memory that it asks for; nothing where no process was seen at work.
  std::optional<Bytes> outside() const { return outside_; }
  /// Were others on a card whose use cannot be told from that of the processes?
  bool is_shared() const { return is_shared_; }
  /// The card that was used most, or the first; null where none is seen.
  const Card* card() const;

 private:
  void look_at_cards();
  std::optional<Bytes> told_of_processes(const std::vector<Card>& cards) const;
  void look_at_processes();
  void count_steps();
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
  std::vector<PageCopy> pages_;  // of the processes that hold device memory, when last looked
  Bytes live_ = 0;               // of all of them
  Bytes reserved_ = 0;
  Bytes need_ = 0;                      // the largest of a pool, or of a process that the driver serves
  std::map<std::string, Steps> steps_;  // of each process, by its page
  unsigned most_steps_ = 0;
  Bytes held_peak_ = 0;  // what they held at most, each at its own time
  Bytes cards_peak_ = 0;
  Bytes held_when_least_ = 0;
  std::optional<Bytes> outside_;
  bool is_shared_ = false;
  std::vector<Card> before_;
  std::vector<Bytes> grown_;  // of each card, at its peak
};

}  // namespace gpupool::cli
