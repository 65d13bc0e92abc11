// A configuration file: the whole way from the file to options, and back to text.
#include "config/describe.h"
#include "config/load.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const gpupool::fuzz::InputFile file(data, size);
  const gpupool::Loaded loaded = gpupool::load_file(file.path());
  for (const gpupool::Diagnostic& diagnostic : loaded.diagnostics) {
    if (diagnostic.message().find('\n') != std::string::npos) std::abort();  // one line each, whatever the file says
  }
  return 0;
}
