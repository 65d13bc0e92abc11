// One whole file in memory, for verbs that read something small that a person names. A pipe, as the shell's <(command)
// makes one, is read to its end; one into which nobody writes is empty, rather than something to wait for.
#pragma once
#include <cstddef>
#include <string>

namespace gpupool::cli {

/// The text of a file or a pipe of at most `most` bytes, and at least one; a Problem that names the file and why where
/// it is none.
std::string read_input(const std::string& path, std::size_t most);

}  // namespace gpupool::cli
