// The only place that knows the logging library. Lines go to stderr or to log.path, begin with "gpupool:", and are
// never written on the hot path or under a tape's lock. The sink opens at the first message that passes the level; a
// forked child opens its own. Any thread may call; nothing throws.
#pragma once

#include <atomic>
#include <string>

#include "config/options.h"

namespace gpupool::log {

/// Once, before the first message. `path` is "stderr" or a file, already expanded.
void configure(LogLevel level, const std::string& path);

/// A process without a stderr is told nothing there for good: its number may be that of a file by now. Looked at when
/// the core starts and when a pool is made.
void look_for_stderr();
bool has_stderr();

bool enabled(LogLevel level);
void write(LogLevel level, const std::string& message);

inline void error(const std::string& message) { write(LogLevel::error, message); }
inline void warn(const std::string& message) { write(LogLevel::warn, message); }
inline void info(const std::string& message) { write(LogLevel::info, message); }

/// One line of self-identification for GPUPOOL_VERBOSE=1, whatever log.level says: the version, the process, and
/// `what`. The first one of a process only.
void identify(const std::string& what);

/// In the child of a fork: forgets the parent's sink, whose lock another thread may have held.
void forget_sink();

/// Lets one message through per kQuietSeconds and counts what it kept back. Lock-free.
class RateLimit {
 public:
  static constexpr long kQuietSeconds = 10;
  /// True: say it; `suppressed` is how many were kept back since the last one.
  bool pass(unsigned long& suppressed);

 private:
  std::atomic<long> last_second_{0};
  std::atomic<unsigned long> suppressed_{0};
};

}  // namespace gpupool::log
