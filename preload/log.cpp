// See log.h. The logger is reached through one atomic pointer and never deleted: a thread may be inside it when the
// process ends.
#include "preload/log.h"

#include <fcntl.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string_view>

#include "config/text.h"
#include "preload/quiet_signals.h"

namespace gpupool::log {
namespace {

struct Settings {
  LogLevel level = LogLevel::warn;
  std::string path = "stderr";
};

// Written before there is a second thread of ours.
Settings& settings() {
  static Settings* const kSettings = new Settings;
  return *kSettings;
}

std::atomic<spdlog::logger*> the_logger{nullptr};
std::atomic<bool> stderr_is_there{true};

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::trace:
      return spdlog::level::trace;
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::off:
      return spdlog::level::off;
  }
  return spdlog::level::off;
}

// A file of this user's own, or a device such as /dev/null; never through a link, never one that has another name, and
// no pipe that would have to be waited for. -1: none, errno says why. The status by system call, as in config/file.cpp.
int open_log(const std::string& path) {
  int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
  if (file >= 0 && file <= STDERR_FILENO) {  // the numbers of the standard streams are the program's
    const int low = file;
    file = fcntl(low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(low);
  }
  struct stat status = {};
  if (file < 0) return file;
  const bool told = syscall(SYS_fstat, file, &status) == 0;
  if (told && S_ISREG(status.st_mode) && status.st_uid == geteuid() && status.st_nlink == 1) return file;
  if (told && S_ISCHR(status.st_mode)) return file;
  close(file);
  errno = EPERM;
  return -1;
}

// One write for each line: whole lines, whoever else appends. A full disk costs the line.
void write_line(int file, std::string_view line) {
  if (file == STDERR_FILENO && !has_stderr()) return;
  static_cast<void>(!::write(file, line.data(), line.size()));
}

class FileSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FileSink(int file) : file_(file) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    write_line(file_, {line.data(), line.size()});
  }
  void flush_() override {}

 private:
  const int file_;  // never closed: the logger is never deleted
};

spdlog::logger* make_logger() {
  std::shared_ptr<spdlog::sinks::sink> sink;
  // A log that cannot be opened must not stop the program; stderr says what there is to say.
  if (const std::string& path = settings().path; path != "stderr") {
    if (const int file = open_log(path); file >= 0) {
      sink = std::make_shared<FileSink>(file);
    } else {
      const std::string why = std::strerror(errno);
      write_line(STDERR_FILENO, "gpupool: log.path: " + escaped(path, path.size()) + ": " + why + "; using stderr\n");
    }
  }
  if (!sink) sink = std::make_shared<FileSink>(STDERR_FILENO);
  auto logger = std::make_unique<spdlog::logger>("gpupool", std::move(sink));
  logger->set_pattern("gpupool: %v");
  logger->set_level(level_of(settings().level));
  logger->flush_on(spdlog::level::trace);
  logger->set_error_handler([](const std::string&) {});
  return logger.release();
}

spdlog::logger* logger() {
  if (spdlog::logger* present = the_logger.load(std::memory_order_acquire)) return present;
  spdlog::logger* fresh = make_logger();
  spdlog::logger* expected = nullptr;
  if (the_logger.compare_exchange_strong(expected, fresh, std::memory_order_acq_rel)) return fresh;
  delete fresh;
  return expected;
}

}  // namespace

void configure(LogLevel level, const std::string& path) {
  settings() = {level, path};
  look_for_stderr();
}

void look_for_stderr() {
  if (fcntl(STDERR_FILENO, F_GETFD) < 0) stderr_is_there.store(false, std::memory_order_relaxed);
}

bool has_stderr() { return stderr_is_there.load(std::memory_order_relaxed); }

bool enabled(LogLevel level) { return level >= settings().level && settings().level != LogLevel::off; }

void write(LogLevel level, const std::string& message) {
  if (!enabled(level)) return;
  const QuietSignals quiet;
  try {
    logger()->log(level_of(level), "{}", message);
  } catch (...) {
    // Out of memory while saying something: the program goes on without the line.
  }
}

void identify(const std::string& what) {
  static std::atomic<bool> said{false};
  const char* wanted = std::getenv("GPUPOOL_VERBOSE");
  if (wanted == nullptr || *wanted == '\0' || std::string_view{wanted} == "0" || said.exchange(true)) return;
  try {
    const QuietSignals quiet;
    write_line(STDERR_FILENO,
               "gpupool: version " GPUPOOL_VERSION ", process " + std::to_string(getpid()) + ": " + what + "\n");
  } catch (const std::bad_alloc&) {
    return;
  }
}

void forget_sink() { the_logger.store(nullptr, std::memory_order_release); }

bool RateLimit::pass(unsigned long& suppressed) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const long second = now.tv_sec + 1;  // never 0, which stands for "not yet"
  long last = last_second_.load(std::memory_order_relaxed);
  if ((last != 0 && second - last < kQuietSeconds) || !last_second_.compare_exchange_strong(last, second)) {
    suppressed_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  suppressed = suppressed_.exchange(0, std::memory_order_relaxed);
  return true;
}

}  // namespace gpupool::log
