// Work that is submitted after a free waits for an event of another process, which comes only when the freed memory has
// a new owner: nobody may wait for that work meanwhile. Natively this ends; so it must with the pool.
//   foreign_event IMAGE plain|ordered    prints "foreign_event: done", or "wrong" if the block's bytes are
// The other process is this program again, started as `foreign_event IMAGE other`, with a line to the first one.
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "tests/gpu/gpu.h"

namespace {

constexpr std::uint64_t kBytes = std::uint64_t{8} << 20;
constexpr int kLine = 100;  // the descriptor in the other process

void must_move(ssize_t moved, std::size_t wanted) {
  if (moved == static_cast<ssize_t>(wanted)) return;
  std::printf("the other process is gone\n");
  std::exit(1);
}

// Records an event behind work that it lets go when it is told so.
int be_the_other(gpu::Gpu& gpu) {
  const CUstream stream = gpu.make_stream();
  CUevent event = nullptr;
  CUipcEventHandle handle;
  char byte = 0;
  MUST(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
  gpu.wait_flag(stream);
  MUST(cuEventRecord(event, stream));
  MUST(cuIpcGetEventHandle(&handle, event));
  must_move(send(kLine, &handle, sizeof handle, MSG_NOSIGNAL), sizeof handle);
  must_move(recv(kLine, &byte, 1, MSG_WAITALL), 1);
  gpu.set_flag(gpu.make_stream());
  MUST(cuCtxSynchronize());
  must_move(recv(kLine, &byte, 1, MSG_WAITALL), 1);  // the event lives until the first process has done with it
  return 0;
}

int start_the_other(char* image, pid_t& process) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::exit(1);
  std::string self = "/proc/self/exe";
  std::string role = "other";
  char* words[] = {self.data(), image, role.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], kLine);
  if (posix_spawn(&process, self.c_str(), &actions, nullptr, words, environ) != 0) std::exit(1);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  return ends[0];
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  gpu::Gpu gpu(words[1]);
  if (std::strcmp(words[2], "other") == 0) return be_the_other(gpu);
  const bool plain = std::strcmp(words[2], "plain") == 0;
  pid_t process = 0;
  const int line = start_the_other(words[1], process);
  const CUstream first = gpu.make_stream();
  const CUstream second = gpu.make_stream();
  CUdeviceptr before = 0;
  CUdeviceptr after = 0;
  MUST(plain ? cuMemAlloc(&before, kBytes) : cuMemAllocAsync(&before, kBytes, first));
  gpu.fill(before, kBytes, 1, first);

  CUipcEventHandle handle;
  CUevent event = nullptr;
  must_move(recv(line, &handle, sizeof handle, MSG_WAITALL), sizeof handle);
  MUST(cuIpcOpenEventHandle(&event, handle));
  MUST(plain ? cuMemFree(before) : cuMemFreeAsync(before, first));
  MUST(cuStreamWaitEvent(first, event, 0));
  gpu.spin(1, first);

  MUST(plain ? cuMemAlloc(&after, kBytes) : cuMemAllocAsync(&after, kBytes, second));
  gpu.fill(after, kBytes, 2, second);
  gpu.check(after, kBytes, 2, second);
  MUST(cuStreamSynchronize(second));
  must_move(send(line, "g", 1, MSG_NOSIGNAL), 1);
  MUST(cuCtxSynchronize());
  MUST(cuEventDestroy(event));
  must_move(send(line, "e", 1, MSG_NOSIGNAL), 1);
  int status = 0;
  waitpid(process, &status, 0);
  std::printf("foreign_event: %s\n", gpu.wrong() == 0 && status == 0 ? "done" : "wrong");
  return 0;
}
