// What a program without CUDA can see of a preload: its errno at the start, its threads and its open files.
#include <dirent.h>

#include <cerrno>
#include <cstdio>

namespace {

int entries(const char* folder) {
  int count = 0;
  DIR* open_folder = opendir(folder);
  while (open_folder && readdir(open_folder)) ++count;
  if (open_folder) closedir(open_folder);
  return count;
}

}  // namespace

int main() {
  const int first = errno;
  std::printf("errno %d, threads %d, files %d\n", first, entries("/proc/self/task") - 2, entries("/proc/self/fd") - 3);
  return 0;
}
