// Plays a trace through cudaMalloc or cudaMallocAsync, as fast as the program's thread can, and counts what comes of
// it. Besides the contents it checks the addresses: live blocks never overlap. One thread, one device.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/trace/trace.h"
#include "tests/load/contents.h"

namespace gpupool::load {

enum class Api { malloc, async };

struct Settings {
  Api api = Api::malloc;
  std::optional<unsigned> streams;     // deals the requests out to so many in turn; without, the trace says
  std::optional<std::uint64_t> limit;  // events
  double scale = 1;                    // of every request
  Fill fill = Fill::pieces;
};

struct Outcome {
  std::uint64_t events = 0;
  double seconds = 0;
  std::uint64_t live_peak_bytes = 0;  // of the program
  std::uint64_t used_peak_bytes = 0;  // of the card, above what was used before the first request
  std::uint64_t checked_bytes = 0;
  std::uint64_t wrong_bytes = 0;
  std::uint64_t overlaps = 0;
  std::vector<std::string> findings;

  bool good() const { return wrong_bytes == 0 && overlaps == 0; }
};

/// Throws std::runtime_error when a call of the runtime fails.
Outcome play(const Runtime& runtime, const cli::Trace& trace, const Settings& settings);

}  // namespace gpupool::load
