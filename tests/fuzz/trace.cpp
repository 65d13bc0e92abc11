// A trace in whatever format its first bytes say.
#include "cli/console.h"
#include "cli/trace/read.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const gpupool::fuzz::InputFile file(data, size);
  try {
    const gpupool::cli::Trace trace = gpupool::cli::read_trace(file.path());
    std::uint64_t live = 0;
    for (const gpupool::cli::Event& event : trace.events) {
      if (event.slot >= trace.slots) std::abort();  // whoever plays it keeps plain arrays
      if (event.stream != gpupool::cli::kPlain && event.stream >= trace.streams) std::abort();
      if (event.bytes == 0 && live-- == 0) std::abort();
      if (event.bytes != 0) ++live;
    }
  } catch (const gpupool::cli::Problem&) {
    return 0;
  }
  return 0;
}
