// Runs the command as a process with an environment of its own, and keeps what it said. Folders of tests are removed at
// their end.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gpupool::tests {

struct Outcome {
  int status = -1;  // as the shell would say it
  std::string out;
  std::string err;
};

using Variables = std::map<std::string, std::string>;

/// `gpupool words...`; the environment is PATH (/usr/bin:/bin unless it is among them) and `variables`, nothing else.
/// No driver of this machine is seen.
Outcome command(const std::vector<std::string>& words, const Variables& variables = {});

class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  /// A file with this content; returns its path.
  std::string file(const std::string& name, std::string_view content) const;

 private:
  std::string path_;
};

std::string read_text(const std::string& path);

/// A file of the source tree.
std::string source_path(const std::string& relative);

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace gpupool::tests
