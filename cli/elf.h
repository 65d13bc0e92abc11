// What the file of a program or a library says about how it will be loaded (ELF; System V ABI, gABI 4.2). Reads the
// file, nothing else.
#pragma once
#include <string>
#include <vector>

namespace gpupool::cli {

struct ElfFacts {
  bool is_elf = false;
  bool other_machine = false;        // not this command's word size or processor
  bool is_shared = false;            // a library, or an executable that can be loaded anywhere
  std::string interpreter;           // the loader's path; empty: static
  std::vector<std::string> imports;  // names of undefined dynamic symbols
  std::vector<std::string> exports;  // names of defined ones
};

/// Empty facts for what cannot be read or is damaged.
ElfFacts elf_facts(const std::string& path);

/// The interpreter that a script's first line names; empty for anything else. `env NAME` gives NAME.
std::string script_interpreter(const std::string& path);

/// Absolute path of what `program` starts: as it is with a slash, else by PATH; empty when there is none.
std::string find_program(const std::string& program);

}  // namespace gpupool::cli
