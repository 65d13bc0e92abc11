// From argv to a verb and its Arguments, by CLI11, which sees nothing but the table of verbs.def.
// Faults are Problems that name the word and the nearest one that exists.
#pragma once
#include <string>
#include <vector>

#include "cli/verbs.h"

namespace gpupool::cli {

struct Parsed {
  const Verb* verb = nullptr;  // null: the command by itself
  bool help = false;
  bool version = false;
  Arguments arguments;
};

/// `words` is argv without its first.
Parsed parse(std::vector<std::string> words);

}  // namespace gpupool::cli
