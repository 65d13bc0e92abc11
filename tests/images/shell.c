/* For the musl root, which has nothing else: a program that starts another and tells its status, as a shell would. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char** words) {
  if (count < 2) return 0;
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    execv(words[1], words + 1);
    _exit(127);
  }
  waitpid(child, &status, 0);
  printf("shell: %d\n", WEXITSTATUS(status));
  return 0;
}
