// See partner.h.
#include "tests/cases/programs/partner.h"

#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "tests/preload/core/program.h"

namespace partner {
namespace {

constexpr int kLine = 100;  // the descriptor in the partner

}  // namespace

Partner::Partner(const char* name, Preload preload) {
  int ends[2];
  HOLDS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  line_ = ends[0];
  std::vector<char*> variables;
  for (char** each = environ; *each; ++each) {
    if (preload == Preload::kSame || std::strncmp(*each, "LD_PRELOAD=", 11) != 0) variables.push_back(*each);
  }
  variables.push_back(nullptr);
  std::string program = "/proc/self/exe";
  std::string word = name;
  char* words[] = {program.data(), word.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], kLine);
  EQUAL(posix_spawn(&process_, program.c_str(), &actions, nullptr, words, variables.data()), 0);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
}

Partner::~Partner() {
  close(line_);
  int status = 0;
  if (process_ < 0) return;
  waitpid(process_, &status, 0);
  EQUAL(status, 0);
}

void Partner::kill() {
  ::kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  process_ = -1;
}

int other_side() { return kLine; }

void send(int line, const void* bytes, std::size_t count) {
  HOLDS(::send(line, bytes, count, MSG_NOSIGNAL) == static_cast<ssize_t>(count));
}

void receive(int line, void* bytes, std::size_t count) {
  HOLDS(::recv(line, bytes, count, MSG_WAITALL) == static_cast<ssize_t>(count));
}

}  // namespace partner
