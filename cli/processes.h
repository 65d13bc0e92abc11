// The processes of a program that this command runs and waits for: which they are, what is sent to them, and what
// others send to this command meanwhile. A process is known by a text in its environment that no other has (its mark).
#pragma once
#include <sys/types.h>

#include <csignal>
#include <optional>
#include <string>
#include <vector>

namespace gpupool::cli {

/// The processes of this user in whose environment `mark` is.
std::vector<int> processes_with(const std::string& mark);

/// As the terminal would: to the program, and to those of our own group that have the mark; SIGKILL to all that have
/// it.
void send_to_all(pid_t program, const std::string& mark, int signal);

/// After the program was asked to end, and has: some of its processes may not have listened, as a shell's background
/// jobs ignore SIGINT. SIGTERM to all that have the mark, SIGKILL to those that are there ten seconds later.
void end_what_is_left(const std::string& mark);

/// While it lives, signals that would end this command are kept for the program. The terminal sends its own to the
/// program as well; what is sent to this command alone is handed on.
class SignalsOfOthers {
 public:
  SignalsOfOthers();
  ~SignalsOfOthers();
  SignalsOfOthers(const SignalsOfOthers&) = delete;
  SignalsOfOthers& operator=(const SignalsOfOthers&) = delete;

  /// What is to be handed on now, each once; 0: nothing. `seconds`: a clock.
  int due(double seconds);

 private:
  static constexpr int kSignals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
  struct sigaction before_[4];
  std::optional<double> interrupted_at_;
};

}  // namespace gpupool::cli
