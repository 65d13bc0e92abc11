// Prints docs/configuration.md on standard output. A build tool, not installed.
#include <cstdio>

#include "config/manual.h"

int main() {
  const std::string text = gpupool::manual_markdown();
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0 ? 0 : 1;
}
