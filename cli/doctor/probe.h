// Loading a library to see whether it can be loaded, in a child process, so that nothing of it stays here and a crash
// is an answer.
#pragma once
#include <string>

namespace gpupool::cli {

struct Probe {
  bool loaded = false;
  std::string says;  // the loader's message, or what `look` said
};

/// `look` is called in the child with the library's handle; its text is the answer. It may be null.
Probe probe_library(const std::string& name, std::string (*look)(void* library));

}  // namespace gpupool::cli
