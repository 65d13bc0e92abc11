/* One program, many small observations: probe NAME [argument] prints what it saw. Not linked with libcuda. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef unsigned long long pointer;
typedef int (*alloc_fn)(pointer*, size_t);
typedef int (*alloc_async_fn)(pointer*, size_t, void*);
typedef int (*proc_fn)(const char*, void**, int, uint64_t);
typedef int (*proc_v2_fn)(const char*, void**, int, uint64_t, int*);

static void* driver(void) {
  void* handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!handle) printf("no driver: %s\n", dlerror());
  return handle;
}

static void show_alloc(const char* what, void* function) {
  pointer block = 0;
  int result = function ? ((alloc_fn)function)(&block, 16) : -1;
  printf("%s %d %llx\n", what, result, block);
}

static void show_alloc_async(const char* what, void* function) {
  pointer block = 0;
  int result = function ? ((alloc_async_fn)function)(&block, 16, NULL) : -1;
  printf("%s %d %llx\n", what, result, block);
}

static int entries(const char* folder) {
  int count = 0;
  DIR* dir = opendir(folder);
  while (dir && readdir(dir)) ++count;
  if (dir) closedir(dir);
  return count;
}

static int process(int errno_at_start) {
  printf("errno %d fds %d threads %d signals", errno_at_start, entries("/proc/self/fd"), entries("/proc/self/task"));
  for (int number = 1; number < 32; ++number) {
    struct sigaction action;
    if (sigaction(number, NULL, &action) == 0)
      putchar(action.sa_handler == SIG_DFL ? 'd' : action.sa_handler == SIG_IGN ? 'i' : 'h');
  }
  putchar('\n');
  return 0;
}

static int opened(const char* path) {
  void* handle = *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : driver();
  void* function = dlsym(handle, "cuMemAlloc_v2");
  show_alloc("first", function);
  show_alloc("second", function);
  printf("same %d\n", dlsym(handle, "cuMemAlloc_v2") == function);
  dlerror();
  int absent = dlsym(handle, "cuMemSetMemPool") == NULL;
  printf("absent %d %d\n", absent, dlerror() != NULL);
  return 0;
}

static int names(void) {
  static const char* const asked[] = {"cuInit",
                                      "cuMemAlloc_v2",
                                      "cuMemAlloc",
                                      "cuMemAlloc_v",
                                      "cuMemAlloc_v22",
                                      "cuMemAllocA",
                                      "cublasCreate_v2",
                                      "cudnnCreate",
                                      "curl_easy_init",
                                      "cu",
                                      "c",
                                      "",
                                      "getpid"};
  void* handle = driver();
  for (unsigned i = 0; i < sizeof asked / sizeof *asked; ++i) {
    Dl_info info = {0};
    void* found = dlsym(handle, asked[i]);
    const char* file = found && dladdr(found, &info) ? strrchr(info.dli_fname, '/') : NULL;
    printf("%s=%s\n", asked[i], !found ? "NULL" : file ? file + 1 : "?");
  }
  return 0;
}

static int fallback_scope(void) {
  dlerror();
  void* before = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
  printf("before %d error %d\n", before != NULL, dlerror() != NULL);
  void* program = dlopen(NULL, RTLD_NOW);
  printf("program %d\n", dlsym(program, "cuMemAlloc_v2") != NULL);
  printf("other %d\n", dlsym(RTLD_DEFAULT, "getpid") != NULL);
  driver();
  show_alloc("after", dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
  printf("absent %d\n", dlsym(RTLD_DEFAULT, "cuMemSetMemPool") != NULL);
  return 0;
}

static int without_driver(void) {
  void* hook = dlsym(RTLD_NEXT, "cuMemAlloc_v2");
  show_alloc("call", hook);
  printf("loaded %d\n", dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY) != NULL);
  driver();
  show_alloc("later", hook);
  return 0;
}

static int arguments(void) {
  void* handle = driver();
  typedef int (*eight_fn)(long, long, long, long, long, long, long, long);
  typedef int (*mixed_fn)(long, double, long, double, long, double, long, double, long, double, long, double, long,
                          double, long, double, long, double);
  eight_fn eight = (eight_fn)dlsym(handle, "cuLibraryLoadData");
  mixed_fn mixed = (mixed_fn)dlsym(handle, "cuGraphAddMemAllocNode");
  for (int i = 0; i < 2; ++i)
    printf("%d %d\n", eight(1, 2, 3, 4, 5, 6, 7, 8),
           mixed(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18));
  return 0;
}

static int proc_addresses(void) {
  void* handle = driver();
  void* found = NULL;
  int status = -1;
  proc_v2_fn v2 = (proc_v2_fn)dlsym(handle, "cuGetProcAddress_v2");
  proc_fn v1 = (proc_fn)dlsym(handle, "cuGetProcAddress");
  v2("cuMemAlloc", &found, 12000, 0, &status), show_alloc("v2", found), printf("status %d\n", status);
  v1("cuMemAlloc", &found, 11030, 0), show_alloc("v1", found);
  v2("cuMemAllocAsync", &found, 12000, 0, NULL), show_alloc_async("legacy", found);
  v2("cuMemAllocAsync", &found, 12000, 2, NULL), show_alloc_async("per-thread", found);
  v2("cuMemAlloc", &found, 2000, 0, &status), printf("old %d status %d\n", found != NULL, status);
  v2("cuInit", &found, 12000, 0, &status), printf("cuInit %d\n", found == dlsym(handle, "cuInit"));
  v2("cuGetProcAddress", &found, 12000, 0, &status);
  ((proc_v2_fn)found)("cuMemAlloc", &found, 13000, 2, &status), show_alloc("through itself", found);
  return 0;
}

static int inner_lookup(void) {
  typedef int (*info_fn)(size_t*, size_t*);
  size_t seen = 0, total = 0;
  ((info_fn)dlsym(driver(), "cuMemGetInfo_v2"))(&seen, &total);
  printf("the driver found %zx\n", seen);
  return 0;
}

enum { kThreads = 8 };
static pthread_barrier_t barrier;
static void* handle_of_race;

static void* racer(void* out) {
  pthread_barrier_wait(&barrier);
  ((alloc_fn)dlsym(handle_of_race, "cuMemAlloc_v2"))(out, 16);
  return NULL;
}

static int race(void) {
  pthread_t threads[kThreads];
  pointer blocks[kThreads];
  int marked = 0;
  handle_of_race = driver();
  pthread_barrier_init(&barrier, NULL, kThreads);
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, racer, &blocks[i]);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < kThreads; ++i) marked += blocks[i] == 0x101010;
  printf("marked %d of %d\n", marked, kThreads);
  return 0;
}

static int forked(void) {
  void* function = dlsym(driver(), "cuMemAlloc_v2");
  for (int round = 0; round < 2; ++round) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      show_alloc("child", function);
      fflush(stdout);
      _exit(0);
    }
    waitpid(child, NULL, 0);
    show_alloc("parent", function);
  }
  return 0;
}

static int kept_errno(void) {
  void* handle = driver();
  errno = 77;
  void* function = dlsym(handle, "cuMemAlloc_v2");
  int after_lookup = errno;
  pointer block;
  ((alloc_fn)function)(&block, 1);
  printf("%d %d\n", after_lookup, errno);
  return 0;
}

static int moved(void) {
  if (chdir("/") != 0) return 1;
  return opened("");
}

static int plugin(const char* path) {
  driver();
  show_alloc("plugin", dlsym(dlopen(path, RTLD_NOW | RTLD_LOCAL), "cuMemAlloc_v2"));
  return 0;
}

static int runpath(const char* path) {
  int (*outer)(void) = (int (*)(void))dlsym(dlopen(path, RTLD_NOW), "outer");
  printf("%d\n", outer ? outer() : -2);
  return 0;
}

static int interposed(void) {
  int (*self)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "interposer_probe");
  int (*calls)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "dlsym_interposer_calls");
  if (self) printf("next of itself is nothing %d, libc behind it %d\n", self(), getppid() == 1000000);
  if (calls) printf("counted %d\n", calls() > 0);
  return opened("");
}

int main(int count, char** words) {
  const int errno_at_start = errno;
  const char* name = count > 1 ? words[1] : "";
  const char* argument = count > 2 ? words[2] : "";
  setvbuf(stdout, NULL, _IOFBF, 1 << 16);
  if (!strcmp(name, "process")) return process(errno_at_start);
  if (!strcmp(name, "opened")) return opened(argument);
  if (!strcmp(name, "names")) return names();
  if (!strcmp(name, "default")) return fallback_scope();
  if (!strcmp(name, "without-driver")) return without_driver();
  if (!strcmp(name, "arguments")) return arguments();
  if (!strcmp(name, "proc-addresses")) return proc_addresses();
  if (!strcmp(name, "inner-lookup")) return inner_lookup();
  if (!strcmp(name, "race")) return race();
  if (!strcmp(name, "forked")) return forked();
  if (!strcmp(name, "errno")) return kept_errno();
  if (!strcmp(name, "moved")) return moved();
  if (!strcmp(name, "plugin")) return plugin(argument);
  if (!strcmp(name, "runpath")) return runpath(argument);
  if (!strcmp(name, "interposed")) return interposed();
  return 64;
}
