// See processes.h.
#include "cli/processes.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <thread>

#include "cli/folder.h"

namespace gpupool::cli {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{20};
constexpr std::chrono::seconds kPatience{10};
// Whoever interrupts us by kill may have sent the same to all of our group; the program has so long to answer that.
constexpr double kGrace = 2;

volatile std::sig_atomic_t asked_to_end = 0;  // the last of SIGTERM and SIGHUP
volatile std::sig_atomic_t interrupted = 0;   // by a process, not by a terminal

void keep(int signal, siginfo_t* info, void*) {
  if (signal == SIGTERM || signal == SIGHUP)
    asked_to_end = signal;
  else if (signal == SIGINT && info->si_code <= 0)
    interrupted = 1;
}

}  // namespace

std::vector<int> processes_with(const std::string& mark) {
  std::vector<int> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const int process = std::atoi(entry->path().filename().c_str());
    if (process > 0 && read_small_file(entry->path().string() + "/environ").find(mark) != std::string::npos)
      found.push_back(process);
  }
  return found;
}

void send_to_all(pid_t program, const std::string& mark, int signal) {
  kill(program, signal);
  if (mark.empty()) return;
  for (const int process : processes_with(mark)) {
    if (process != program && (signal == SIGKILL || getpgid(process) == getpgrp())) kill(process, signal);
  }
}

void end_what_is_left(const std::string& mark) {
  for (const int process : processes_with(mark)) kill(process, SIGTERM);
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  while (!processes_with(mark).empty()) {
    if (Clock::now() - begin > kPatience) {
      for (const int process : processes_with(mark)) kill(process, SIGKILL);
      return;
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

SignalsOfOthers::SignalsOfOthers() {
  struct sigaction handler {};
  handler.sa_sigaction = keep;
  handler.sa_flags = SA_SIGINFO | SA_RESTART;
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &handler, nullptr);  // nohup, background jobs
  }
}

SignalsOfOthers::~SignalsOfOthers() {
  for (std::size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

int SignalsOfOthers::due(double seconds) {
  if (const int signal = asked_to_end; signal != 0) {
    asked_to_end = 0;
    return signal;
  }
  if (interrupted != 0 && !interrupted_at_) interrupted_at_ = seconds;
  interrupted = 0;
  if (!interrupted_at_ || seconds < *interrupted_at_ + kGrace) return 0;
  interrupted_at_.reset();
  return SIGINT;
}

}  // namespace gpupool::cli
