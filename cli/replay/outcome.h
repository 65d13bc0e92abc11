// The result of one replay: the numbers of outcome.def, and what is computed from them.
#pragma once
#include <cstdint>
#include <string>

namespace gpupool::cli {

struct Outcome {
  std::string strategy;
#define NUMBER(name, sentence) std::uint64_t name = 0;
#include "cli/replay/outcome.def"
#undef NUMBER
  double driver_us = 0;       // by the measured costs of costs.h
  double late_driver_us = 0;  // of these, in the second half of the trace
  double seconds = 0;         // of this host's processor, for all events

  /// What was reserved for one byte that lived.
  double ratio() const { return peak_live_bytes ? double(reserved_peak_bytes) / double(peak_live_bytes) : 0.0; }
  double waste() const {
    return needed_peak_bytes > peak_live_bytes ? 1.0 - double(peak_live_bytes) / double(needed_peak_bytes) : 0.0;
  }
  double requests_per_second() const { return seconds > 0 ? double(requests) / seconds : 0.0; }
};

}  // namespace gpupool::cli
