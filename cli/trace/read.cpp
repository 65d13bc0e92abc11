// See read.h.
#include "cli/trace/read.h"

#include "cli/console.h"
#include "config/text.h"

namespace gpupool::cli {

Trace read_trace(const std::string& path) {
  Source source(path);
  const std::string_view start = source.peek(7);
  if (start.empty()) throw Problem(Exit::input, escaped(path, path.size()) + ": is empty");
  if (start.size() > 1 && start[0] == '\x80' && start[1] >= 2 && start[1] <= 5) return read_pytorch_snapshot(source);
  if (start == "Thread,") return read_rmm(source);
  return read_csv(source);
}

}  // namespace gpupool::cli
