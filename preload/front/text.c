/* Strings, errno and the path of this object, without a library. */
#include "preload/front/front.h"
#include "preload/front/system.h"

#include <fcntl.h>

unsigned gpupool_length(const char* text) {
  unsigned length = 0;
  while (text[length]) ++length;
  return length;
}

int gpupool_equal(const char* a, const char* b) {
  while (*a && *a == *b) ++a, ++b;
  return *a == *b;
}

unsigned gpupool_append(char* to, unsigned length, unsigned bytes, const char* text) {
  while (*text && length + 1 < bytes) to[length++] = *text++;
  to[length] = 0;
  return length;
}

struct gpupool_errno gpupool_errno_save(void) {
  typedef int* (*location_fn)(void);
  location_fn location = (location_fn)gpupool_libc_symbol("__errno_location");
  struct gpupool_errno saved = {location ? location() : 0, 0};
  if (saved.where) saved.value = *saved.where;
  return saved;
}

void gpupool_errno_restore(struct gpupool_errno saved) {
  if (saved.where) *saved.where = saved.value;
}

/* Parses lines "first-last perms offset device inode   path" up to the one that holds the address; a path longer than
 * fits is none. */
static unsigned path_of_mapping(uintptr_t address, char* path, unsigned bytes) {
  const long file = gpupool_syscall(__NR_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
  if (file < 0) return 0;
  char buffer[512];
  uintptr_t first = 0, number = 0;
  unsigned field = 0, length = 0;
  int found = 0, complete = 0;
  for (long got; !complete && (got = gpupool_syscall(__NR_read, file, (long)buffer, sizeof buffer, 0)) > 0;) {
    for (long i = 0; i < got && !complete; ++i) {
      const char c = buffer[i];
      if (c == '\n') {
        complete = found;
        field = 0, number = 0, length = found ? length : 0;
      } else if (field == 0 && c == '-') {
        first = number, number = 0;
      } else if (field == 0 && c == ' ') {
        found = first <= address && address < number;
        field = 1;
      } else if (field == 0) {
        number = number * 16 + (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
      } else if (found && (length || c == '/') && length < bytes) {
        path[length++] = c;
      }
    }
  }
  gpupool_syscall(__NR_close, file, 0, 0, 0);
  return found && length < bytes ? length : 0;
}

unsigned gpupool_own_directory(char* path, unsigned bytes) {
  const char* name = gpupool_own_name();
  unsigned length = 0;
  if (name && name[0] == '/')
    length = gpupool_append(path, 0, bytes, name);
  else /* preloaded by a relative path: the working directory may have changed since */
    length = path_of_mapping((uintptr_t)gpupool_stubs, path, bytes);
  while (length && path[length - 1] != '/') --length;
  path[length] = 0;
  return length;
}
