// Reads GPUPOOL_SIM_* once. Owned by the process for ever (never destroyed): calls may arrive while the process exits.
#include "tests/simcuda/settings.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace gpupool::sim {
namespace {

[[noreturn]] void refuse(const char* name, const char* text) {
  std::fprintf(stderr, "simcuda: cannot read %s='%s'\n", name, text);
  std::abort();
}

uint64_t number(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  if (!text || !*text) return fallback;
  char* end = nullptr;
  const uint64_t value = std::strtoull(text, &end, 10);
  if (*end) refuse(name, text);
  return value;
}

std::string with_pid(std::string path) {
  if (const size_t at = path.find("%p"); at != std::string::npos) path.replace(at, 2, std::to_string(getpid()));
  return path;
}

Settings read() {
  Settings s;
  s.devices = static_cast<int>(number("GPUPOOL_SIM_DEVICES", 1));
  s.seed = number("GPUPOOL_SIM_SEED", s.seed);
  s.driver_version = static_cast<int>(number("GPUPOOL_SIM_DRIVER_VERSION", 13000));
  s.deadlock_ms = number("GPUPOOL_SIM_DEADLOCK_MS", s.deadlock_ms);
  if (const char* text = std::getenv("GPUPOOL_SIM_MEMORY"); text && *text && !parse_size(text, s.memory_bytes))
    refuse("GPUPOOL_SIM_MEMORY", text);
  if (const char* text = std::getenv("GPUPOOL_SIM_SCHEDULE"); text && *text && !parse_schedule(text, s.schedule))
    refuse("GPUPOOL_SIM_SCHEDULE", text);
  if (const char* text = std::getenv("GPUPOOL_SIM_FAULT")) s.faults = text;
  if (const char* text = std::getenv("GPUPOOL_SIM_CARD")) s.card_path = text;
  if (const char* text = std::getenv("GPUPOOL_SIM_TRACE")) s.trace_path = with_pid(text);
  return s;
}

}  // namespace

bool parse_schedule(const std::string& name, Schedule& out) {
  if (name == "late") return out = Schedule::kLate, true;
  if (name == "eager") return out = Schedule::kEager, true;
  if (name == "random") return out = Schedule::kRandom, true;
  return false;
}

bool parse_size(const std::string& text, uint64_t& bytes) {
  char* end = nullptr;
  const uint64_t value = std::strtoull(text.c_str(), &end, 10);
  if (end == text.c_str()) return false;
  const std::string unit = end;
  int shift = -1;
  if (unit.empty()) shift = 0;
  if (unit == "KiB") shift = 10;
  if (unit == "MiB") shift = 20;
  if (unit == "GiB") shift = 30;
  if (shift < 0 || value == 0) return false;
  bytes = value << shift;
  return true;
}

Settings& settings() {
  static Settings* const instance = new Settings(read());
  return *instance;
}

}  // namespace gpupool::sim
