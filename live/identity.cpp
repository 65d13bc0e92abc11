// See identity.h.
#include "live/identity.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

namespace gpupool {
namespace {

std::string short_file(const char* path) {
  char text[1024];
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  const ssize_t length = read(file, text, sizeof text);
  close(file);
  return length > 0 ? std::string(text, static_cast<std::size_t>(length)) : std::string();
}

std::uint64_t inode_of(const char* path) {
  struct stat info {};
  return stat(path, &info) == 0 ? info.st_ino : 0;
}

}  // namespace

std::uint64_t start_ticks_of(pid_t pid) {
  constexpr int kStartField = 22;
  const std::string text = short_file(("/proc/" + std::to_string(pid) + "/stat").c_str());
  std::size_t at = text.rfind(')');  // the name before it may hold blanks and brackets
  for (int field = 2; at != std::string::npos && field < kStartField; ++field) at = text.find(' ', at + 1);
  return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at, nullptr, 10);
}

std::uint64_t own_pid_namespace() { return inode_of("/proc/self/ns/pid"); }
std::uint64_t own_ipc_namespace() { return inode_of("/proc/self/ns/ipc"); }

std::string boot_id() {
  const std::string text = short_file("/proc/sys/kernel/random/boot_id");
  return text.substr(0, text.find('\n'));
}

std::string page_name_start(uid_t user) { return "gpupool-" + std::to_string(user) + "-"; }

std::string page_name(const PageIdentity& who, uid_t user) {
  return page_name_start(user) + std::to_string(who.pid_namespace) + "-" + std::to_string(who.pid) + "-" +
         std::to_string(who.start_ticks);
}

}  // namespace gpupool
