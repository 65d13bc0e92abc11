// Runs the test program under the preload, on the simulated driver, and keeps what it said.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace gpupool::tests {

struct Outcome {
  int status = -1;  // as the shell would say it
  std::string out;  // what the program said on stdout
  std::string err;  // what gpupool said on stderr
};

enum class Preload : unsigned char { kNone, kFront };

using Environment = std::map<std::string, std::string>;

Outcome run_case(const std::string& name, const Environment& settings = {}, Preload preload = Preload::kFront);

/// Another program than the one of the cases: its path and its arguments.
Outcome run_program(std::vector<std::string> words, const Environment& settings = {},
                    Preload preload = Preload::kFront);

/// The same, without waiting for it; it says what it says into files of `folder`.
class Folder;
pid_t start_program(std::vector<std::string> words, const Environment& settings, Preload preload, const Folder& folder);
/// How it ended, as the shell would say it.
int wait_for(pid_t child);
/// Returns when `condition` holds; throws when the child has ended before.
void wait_while_running(pid_t child, const std::function<bool()>& condition);

/// Where live pages are segments of shared memory instead of files.
inline const std::string kSharedMemory = "/dev/shm";

/// A fresh folder for one test's files, removed at the end.
class Folder {
 public:
  Folder();
  explicit Folder(const std::string& parent);
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  std::vector<std::string> files() const;

 private:
  std::string path_;
};

std::string read_file(const std::string& path);

}  // namespace gpupool::tests
