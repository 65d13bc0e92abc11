// Where the report lies: never half a file, never over another's, never through a link.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "live/report.h"
#include "live/taken.h"
#include "live/write_all.h"

namespace gpupool {
namespace {

// A file that nobody else has, in the folder of `path`, complete and closed; empty on failure.
std::string complete_temporary(const std::string& path, std::string_view text) {
  std::string name = path + ".XXXXXX";
  const int file = mkostemp(name.data(), O_CLOEXEC);  // created exclusively, mode 0600
  if (file < 0) return "";
  const bool complete = write_all(file, text) && fchmod(file, 0600) == 0;
  int error = errno;
  if (close(file) == 0 && complete) return name;
  if (complete) error = errno;
  unlink(name.c_str());
  errno = error;
  return "";
}

enum class Claim : std::uint8_t { kOurs, kTaken, kImpossible };

// Gives the complete file a name that nobody has. link() fails where rename() would replace, dangling links included;
// where the file system has no links, an exclusively created empty file holds the name for the moment until the rename.
Claim claim(const std::string& temporary, const std::string& name) {
  if (link(temporary.c_str(), name.c_str()) == 0) return Claim::kOurs;
  if (errno == EEXIST) return Claim::kTaken;
  const int placeholder = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (placeholder < 0) return errno == EEXIST ? Claim::kTaken : Claim::kImpossible;
  close(placeholder);
  return rename(temporary.c_str(), name.c_str()) == 0 ? Claim::kOurs : Claim::kImpossible;
}

bool write_to_device(const std::string& path, std::string_view text) {
  const int file = open_device(path);
  if (file < 0) return false;
  const bool complete = write_all(file, text);
  const int error = errno;
  close(file);
  errno = error;
  return complete;
}

}  // namespace

std::string write_report(const std::string& path, std::string_view text) {
  const Taken by = taken(path);
  if (by == Taken::kByDevice) return write_to_device(path, text) ? path : "";
  if (by == Taken::kByOther) {
    errno = EOPNOTSUPP;
    return "";
  }
  const std::string temporary = complete_temporary(path, text);
  if (temporary.empty()) return "";
  Claim got = Claim::kTaken;
  std::string name;
  for (int suffix = 0; suffix < kMostSuffixes && got == Claim::kTaken; ++suffix) {
    name = suffixed(path, suffix);
    got = claim(temporary, name);
  }
  const int error = errno;
  unlink(temporary.c_str());
  errno = error;
  return got == Claim::kOurs ? name : "";
}

}  // namespace gpupool
