// See watch.h.
#include "cli/size/watch.h"

#include <signal.h>
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

}  // namespace

RunWatch::RunWatch(std::optional<double> most_seconds)
    : most_seconds_(most_seconds), shows_(isatty(STDERR_FILENO) == 1), before_(cards_seen()), grown_(before_.size()) {}

int RunWatch::look(double seconds) {
  if (seconds >= next_look_) {
    next_look_ = seconds + kBetweenLooks;
    used_ = 0;
    const std::vector<Card> now = cards_seen();
    for (std::size_t i = 0; i < std::min(now.size(), before_.size()); ++i) {
      const Bytes grown = now[i].used - std::min(now[i].used, before_[i].used);
      grown_[i] = std::max(grown_[i], grown);
      used_ += grown;
    }
    peak_ = std::max(peak_, used_);
    if (shows_) {
      char time[32];
      std::snprintf(time, sizeof time, "%.0f s", seconds);
      const std::string line = "gpupool: " +
                               (before_.empty() ? std::string{"counting"}
                                                : "on the cards " + readable(used_) + ", at most " + readable(peak_)) +
                               ", " + time;
      std::fprintf(stderr, "\r%s%*s", line.c_str(), static_cast<int>(shown_ > line.size() ? shown_ - line.size() : 0),
                   "");
      shown_ = line.size();
    }
  }
  if (!most_seconds_ || signals_ == std::size(kSignals) || seconds < *most_seconds_ + signals_ * kPatience) return 0;
  stopped_ = true;
  return kSignals[signals_++];
}

void RunWatch::finish() {
  if (shows_) std::fprintf(stderr, "\r%*s\r", static_cast<int>(shown_), "");
}

const Card* RunWatch::card() const {
  if (before_.empty()) return nullptr;
  return &before_[static_cast<std::size_t>(std::ranges::max_element(grown_) - grown_.begin())];
}

}  // namespace gpupool::cli
