// A report of a process, as `gpupool report` reads it.
#include "cli/console.h"
#include "cli/report/file.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const gpupool::fuzz::InputFile file(data, size);
  try {
    gpupool::cli::read_report(file.path());
  } catch (const gpupool::cli::Problem&) {
    return 0;
  }
  return 0;
}
