// See watch.h.
#include "cli/size/watch.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "config/text.h"

namespace gpupool::cli {
namespace {

constexpr double kBetweenLooks = 0.25;
// Interrupted first, as by a person: Python then ends in order. Who does not listen is asked twice more.
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGKILL};
constexpr double kPatience = 10;

std::size_t terminal_columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

}  // namespace

RunWatch::RunWatch(const CountedRun& run, RunLimits limits)
    : run_(run), limits_(limits), shows_(isatty(STDERR_FILENO) == 1), before_(cards_seen()), grown_(before_.size()) {}

int RunWatch::look(double seconds) {
  const bool is_due = seconds >= next_look_;
  if (is_due) {
    next_look_ = seconds + kBetweenLooks;
    look_at_cards();
  }
  if ((is_due && shows_) || limits_.steps) look_at_processes();
  if (is_due && shows_) show(seconds);
  if (signals_ == std::size(kSignals) || !is_over(seconds) || seconds < stopped_at_ + signals_ * kPatience) return 0;
  return kSignals[signals_++];
}

bool RunWatch::is_over(double seconds) {
  if (!stopped_by_.empty()) return true;
  if (limits_.seconds && seconds >= *limits_.seconds)
    stopped_by_ = "--seconds";
  else if (limits_.steps && most_steps_ >= *limits_.steps)
    stopped_by_ = "--steps";
  else
    return false;
  stopped_at_ = seconds;
  return true;
}

void RunWatch::look_at_cards() {
  Bytes used = 0;
  const std::vector<Card> now = cards_seen();
  for (std::size_t i = 0; i < std::min(now.size(), before_.size()); ++i) {
    const Bytes grown = now[i].used - std::min(now[i].used, before_[i].used);
    grown_[i] = std::max(grown_[i], grown);
    used += grown;
  }
  cards_peak_ = std::max(cards_peak_, used);
}

void RunWatch::look_at_processes() {
  const std::vector<PageCopy> pages = run_.pages();
  processes_ = pages.size();
  live_ = reserved_ = 0;
  most_steps_ = 0;
  for (const PageCopy& copy : pages) {
    Bytes live = copy.page->passed.live.load();
    reserved_ += live;
    need_ = std::max(need_, copy.page->passed.peak.load());
    for (const auto& pool : copy.pools) {
      live += pool->stats.live.current();
      reserved_ += pool->stats.reserved.current();
      need_ = std::max(need_, pool->stats.needed.peak());
    }
    live_ += live;
    Steps& steps = steps_[copy.path];
    steps.see(live);
    most_steps_ = std::max(most_steps_, steps.count());
  }
}

void RunWatch::show(double seconds) {
  std::string line = "gpupool: ";
  if (processes_ > 1) line += std::to_string(processes_) + " processes, ";
  line += "live " + readable(live_) + ", reserved " + readable(reserved_) + ", need so far " + readable(need_);
  if (limits_.steps) line += ", step " + std::to_string(most_steps_);
  char time[32];
  std::snprintf(time, sizeof time, ", %.0f s  ", seconds);
  line += time;
  line.resize(std::min(line.size(), terminal_columns() - 1));
  std::fprintf(stderr, "\r%s%*s", line.c_str(), static_cast<int>(shown_ > line.size() ? shown_ - line.size() : 0), "");
  shown_ = line.size();
}

void RunWatch::finish() {
  if (shows_) std::fprintf(stderr, "\r%*s\r", static_cast<int>(shown_), "");
}

const Card* RunWatch::card() const {
  if (before_.empty()) return nullptr;
  return &before_[static_cast<std::size_t>(std::ranges::max_element(grown_) - grown_.begin())];
}

}  // namespace gpupool::cli
