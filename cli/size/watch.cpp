// See watch.h.
#include "cli/size/watch.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <set>

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
  if (seconds >= next_look_) {
    next_look_ = seconds + kBetweenLooks;
    look_at_processes();
    look_at_cards();
    if (shows_) show(seconds);
  }
  if (limits_.steps) count_steps();
  if (signals_ == std::size(kSignals) || !is_over(seconds) || seconds < stopped_at_ + signals_ * kPatience) return 0;
  return kSignals[signals_++];
}

void RunWatch::count_steps() {
  for (const PageCopy& copy : pages_) {
    const std::optional<Bytes> live = live_now(copy);
    if (!live) continue;
    Steps& steps = steps_[copy.path];
    steps.see(*live);
    most_steps_ = std::max(most_steps_, steps.count());
  }
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

// What the driver says that each of the processes holds, others on the card left out; nothing where it does not name
// them all, as in a container, whose pids are not the driver's.
std::optional<Bytes> RunWatch::told_of_processes(const std::vector<Card>& cards) const {
  Bytes held = 0;
  std::set<std::uint64_t> named;
  for (const Card& card : cards) {
    for (const CardUser& user : card.users) {
      const auto is_user = [&](const PageCopy& copy) { return copy.page->identity.pid == user.pid; };
      if (user.bytes == 0 || std::ranges::none_of(pages_, is_user)) continue;
      held += user.bytes;
      named.insert(user.pid);
    }
  }
  return named.size() == pages_.size() ? std::optional(held) : std::nullopt;
}

// After the processes: a card never holds less than what they had held at most by then, so that the difference is what
// drivers and libraries use, and what their allocators keep unused. The latter grows with time, so the least difference
// counts, since the processes held half of what they hold at most.
void RunWatch::look_at_cards() {
  Bytes used = 0;
  std::size_t users = 0;
  const std::vector<Card> now = cards_seen();
  for (std::size_t i = 0; i < std::min(now.size(), before_.size()); ++i) {
    before_[i].used = std::min(before_[i].used, now[i].used);  // somebody's memory was still on its way back
    const Bytes grown = now[i].used - before_[i].used;
    grown_[i] = std::max(grown_[i], grown);
    used += grown;
    users = std::max(users, now[i].users.size());
  }
  if (pages_.empty()) {
    cards_peak_ = std::max(cards_peak_, used);
    return;
  }
  if (const std::optional<Bytes> told = told_of_processes(now)) {
    used = *told;
  } else {
    is_shared_ = is_shared_ || users > pages_.size();
  }
  cards_peak_ = std::max(cards_peak_, used);
  if (used < held_peak_) return;
  const Bytes outside = (used - held_peak_ + pages_.size() - 1) / pages_.size();
  if (held_peak_ / 2 > held_when_least_) {
    held_when_least_ = held_peak_;
    outside_ = outside;
  } else if (outside_) {
    outside_ = std::min(*outside_, outside);
  }
}

void RunWatch::look_at_processes() {
  pages_ = run_.pages();
  live_ = reserved_ = held_peak_ = 0;
  for (const PageCopy& copy : pages_) {
    const PassedBytes& passed = copy.page->passed;
    live_ += passed.live.load();
    reserved_ += passed.live.load();
    held_peak_ += passed.peak.load();
    need_ = std::max(need_, passed.peak.load());
    for (const auto& pool : copy.pools) {
      live_ += pool->stats.live.current();
      reserved_ += pool->stats.reserved.current();
      held_peak_ += pool->stats.reserved.peak();
      need_ = std::max(need_, pool->stats.needed.peak());
    }
  }
}

void RunWatch::show(double seconds) {
  std::string line = "gpupool: ";
  if (pages_.size() > 1) line += std::to_string(pages_.size()) + " processes, ";
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
