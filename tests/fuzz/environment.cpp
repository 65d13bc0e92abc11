// Lines of KEY=VALUE as the environment of a process.
#include <cstdlib>
#include <vector>

#include "config/load.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> lines;
  std::string_view rest = gpupool::fuzz::text_of(data, size);
  while (!rest.empty() && lines.size() < 64) {
    const std::size_t end = rest.find('\n');
    lines.push_back("GPUPOOL_" + std::string(rest.substr(0, end)));
    lines.back() = lines.back().c_str();                                // a variable ends at its first zero
    if (lines.back().starts_with("GPUPOOL_CONFIG=")) lines.pop_back();  // no files of this machine
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  }
  std::vector<const char*> environment;
  for (const std::string& line : lines) environment.push_back(line.c_str());
  environment.push_back(nullptr);
  const gpupool::Loaded loaded = gpupool::load(environment.data());
  for (const gpupool::Diagnostic& diagnostic : loaded.diagnostics) {
    if (diagnostic.message().find('\n') != std::string::npos) std::abort();
  }
  return 0;
}
