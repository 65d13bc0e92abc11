// Words of a command line, one a line.
#include <vector>

#include "cli/console.h"
#include "cli/parse.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> words;
  std::string_view rest = gpupool::fuzz::text_of(data, size);
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    words.emplace_back(rest.substr(0, end));
    words.back() = words.back().c_str();  // a word ends at its first zero
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  }
  try {
    gpupool::cli::parse(words);
  } catch (const gpupool::cli::Problem&) {
    return 0;
  }
  return 0;
}
