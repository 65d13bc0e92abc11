// What config/ has to say: values, never output. The caller decides where a message goes and how often.
// Every message is one line of printable ASCII, whatever was in the file or the environment.
#pragma once
#include <string>
#include <vector>

namespace gpupool {

enum class SourceKind { none, default_value, file, environment };

// Where a value, or a fault, comes from. Line and column are 1-based, in characters; 0 where there are none.
struct Source {
  SourceKind kind = SourceKind::none;
  std::string name;  // the file's path, or the variable's name
  int line = 0;
  int column = 0;
};
std::string to_text(const Source& source);

enum class Severity {
  note,     // a default met its limits; nobody asked for anything else
  warning,  // something that was asked for is not what happens
};

struct Diagnostic {
  Severity severity = Severity::warning;
  Source source;
  std::string key;       // pool.size; empty where no key is known
  std::string problem;   // the offending text, quoted, and what is wrong with it
  std::string nearest;   // the name that was probably meant; empty without one
  std::string used;      // what holds instead; empty where nothing does
  bool ignored = false;  // what is wrong has no effect

  // file.json:3:5: pool.strategy: "best" is not one of ...; did you mean best_fit?; using best_fit (default)
  std::string message() const;
};

using Diagnostics = std::vector<Diagnostic>;

}  // namespace gpupool
