// One whole file in memory, for verbs that read something small that a person names. Never waits for a pipe.
#pragma once
#include <cstddef>
#include <string>

namespace gpupool::cli {

/// The text of a regular file of at most `most` bytes; a Problem that names the file and why where it is none.
std::string read_input(const std::string& path, std::size_t most);

}  // namespace gpupool::cli
