// See file.h.
#include "config/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace gpupool {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_{fd} {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// strerror is neither thread-safe nor free of locale.
std::string open_problem(int error) {
  switch (error) {
    case ENOENT:
      return "does not exist";
    case EACCES:
      return "may not be read by this user";
    case ELOOP:
      return "is a loop of symbolic links";
    case ENOTDIR:
      return "lies below something that is no directory";
    case ENAMETOOLONG:
      return "has too long a name";
    default:
      return "cannot be read (errno " + std::to_string(error) + ")";
  }
}

std::string refusal(const struct stat& status) {
  if (S_ISDIR(status.st_mode)) return "is a directory";
  if (!S_ISREG(status.st_mode)) return "is not a regular file";
  if ((status.st_mode & S_IWOTH) != 0) return "may be written by every user";
  if (status.st_uid != 0 && status.st_uid != geteuid()) return "belongs to another user";
  return {};
}

}  // namespace

FileText read_config_file(const std::string& path) {
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (file.get() < 0) return {{}, open_problem(errno)};

  // By system call: the C library's fstat is a symbol of glibc 2.33, above the floor of what is preloaded.
  struct stat status = {};
  if (syscall(SYS_fstat, file.get(), &status) != 0) return {{}, open_problem(errno)};
  if (std::string problem = refusal(status); !problem.empty()) return {{}, problem};

  FileText out;
  out.text.resize(kLargestFile + 1);
  std::size_t length = 0;
  while (length < out.text.size()) {
    const ssize_t got = read(file.get(), out.text.data() + length, out.text.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return {{}, open_problem(errno)};
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  if (length > kLargestFile) return {{}, "is larger than 1 MiB"};
  out.text.resize(length);
  return out;
}

}  // namespace gpupool
