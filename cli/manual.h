// The command explained from its tables: --help, docs/cli.md, the man page, and completions for three shells.
// Pure functions.
#pragma once
#include <string>
#include <vector>

#include "cli/verbs.h"

namespace gpupool::cli {

std::string version();

std::string command_help();
std::string verb_help(const Verb& verb);

std::string manual_markdown();
std::string manual_man();

std::string completion_bash();
std::string completion_zsh();
std::string completion_fish();

/// What `help --as` takes.
std::vector<std::string> help_formats();

/// "gpupool run [options] -- PROGRAM..."
std::string usage(const Verb& verb);

}  // namespace gpupool::cli
