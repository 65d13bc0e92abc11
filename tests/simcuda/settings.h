// What the environment asks of the simulator (GPUPOOL_SIM_*), read once, at the first call that needs it. A wrong value
// is a mistake in a test: it is reported and the process ends, so that no test passes by running something else than it
// says.
#pragma once

#include <cstdint>
#include <string>

namespace gpupool::sim {

enum class Schedule {
  kLate,    // nothing runs before somebody waits for it, and what others could spoil is run in the worst order
  kEager,   // everything runs as soon as it can
  kRandom,  // seeded choice
};

struct Settings {
  int devices = 1;
  uint64_t memory_bytes = uint64_t{1} << 30;  // of each card
  uint64_t seed = 1;
  Schedule schedule = Schedule::kLate;
  int driver_version = 13000;
  uint64_t deadlock_ms = 20'000;  // real time without progress after which waiting threads are declared stuck
  std::string faults;
  std::string card_path;   // shared count of the cards' memory; empty: this process alone
  std::string trace_path;  // "%p" stands for the process id
};

Settings& settings();

// False for a name that is no schedule.
bool parse_schedule(const std::string& name, Schedule& out);

// "4096", "512MiB", "8GiB"; false for anything else.
bool parse_size(const std::string& text, uint64_t& bytes);

}  // namespace gpupool::sim
