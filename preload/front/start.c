/* What happens at the first hooked CUDA call: find the driver, load the core beside this object, and fill the stubs'
 * targets.
 *
 * One thread starts the core; others wait for it a while, because a call that slips past the core is a capture or a
 * block it never saw. The wait is bounded: the starter may need the loader's lock that a waiting thread holds. The
 * starter's own calls (from the core, or from the driver under it) go to the driver. A child forked in the middle of a
 * start stays on the driver. A target is stored once, with release order; a stub reads it with acquire order. */
#include "preload/front/abi.h"
#include "preload/front/front.h"
#include "preload/front/system.h"

#include <dlfcn.h>
#include <time.h>

void* gpupool_targets[GPUPOOL_ROWS];

/* Any other value names the starter: process id in the high half, thread id in the low one. */
enum { kUnstarted, kOnCore, kOnDriver };
static uint64_t state;

enum { kWaitMilliseconds = 2000 };

static void* hooks[GPUPOOL_ROWS];
static char directory[4096];
static struct gpupool_front front;

static int no_driver(void) { return 3; }   /* CUDA_ERROR_NOT_INITIALIZED */
static int not_found(void) { return 500; } /* CUDA_ERROR_NOT_FOUND: this driver has no such function */

static const char kNames[] =
#define HOOK(symbol, base, version, flags, kind) #symbol "\0"
#include "preload/hooks.def"
#undef HOOK
    ;

const char* gpupool_row_name(unsigned row) {
  const char* name = kNames;
  while (row--) name += gpupool_length(name) + 1;
  return name;
}

int gpupool_allowed(void) {
  enum { kUnknown, kAllowed, kDisabled };
  enum { kAtSecure = 23 };
  static int decision;
  int known = __atomic_load_n(&decision, __ATOMIC_RELAXED);
  if (known == kUnknown) {
    char* (*get)(const char*) = (char* (*)(const char*))gpupool_libc_symbol("getenv");
    unsigned long (*auxiliary)(unsigned long) = (unsigned long (*)(unsigned long))gpupool_libc_symbol("getauxval");
    const char* disable = get ? get("GPUPOOL_DISABLE") : 0;
    const int off = (disable && *disable && !gpupool_equal(disable, "0")) || (auxiliary && auxiliary(kAtSecure)) ||
                    gpupool_is_second();
    known = off ? kDisabled : kAllowed;
    __atomic_store_n(&decision, known, __ATOMIC_RELAXED);
  }
  return known == kAllowed;
}

static void say(const char* what, const char* path, const char* why) {
  char line[1024];
  unsigned length = gpupool_append(line, 0, sizeof line - 64, "gpupool: ");
  length = gpupool_append(line, length, sizeof line - 64, what);
  length = gpupool_append(line, length, sizeof line - 64, path);
  length = gpupool_append(line, length, sizeof line - 64, why ? ": " : "");
  length = gpupool_append(line, length, sizeof line - 64, why ? why : "");
  length = gpupool_append(line, length, sizeof line, "; running on the plain driver\n");
  gpupool_syscall(__NR_write, 2, (long)line, length, 0);
}

typedef void* (*dlopen_fn)(const char*, int);
typedef char* (*dlerror_fn)(void);
typedef void* (*dlsym_fn)(void*, const char*);

/* A handle that also keeps the driver loaded while stubs lead into it. */
static void* hold_driver(dlopen_fn open, const struct gpupool_object* driver) {
  void* handle = open("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) handle = open("libcuda.so", RTLD_LAZY | RTLD_NOLOAD);
  return handle ? handle : open(driver->name, RTLD_LAZY | RTLD_NOLOAD);
}

static uint64_t start(const struct gpupool_object* driver) {
  dlopen_fn open = (dlopen_fn)gpupool_libc_symbol("dlopen");
  dlsym_fn find = (dlsym_fn)gpupool_libc_symbol("dlsym");
  dlerror_fn error = (dlerror_fn)gpupool_libc_symbol("dlerror");
  void* held = open ? hold_driver(open, driver) : 0;
  if (!gpupool_allowed()) return kOnDriver;
  unsigned length = gpupool_own_directory(directory, sizeof directory);
  if (!held || !find || !length) {
    say("this process does not let the core be loaded", "", 0);
    return kOnDriver;
  }
  char path[sizeof directory];
  gpupool_append(path, gpupool_append(path, 0, sizeof path, directory), sizeof path, "libgpupool_core.so");
  void* core = open(path, RTLD_NOW | RTLD_LOCAL);
  gpupool_core_start_fn core_start = core ? (gpupool_core_start_fn)find(core, GPUPOOL_CORE_START) : 0;
  if (!core_start) {
    say("cannot load the core", "", error ? error() : path);
    return kOnDriver;
  }
  if (!gpupool_next_dlsym) gpupool_next_dlsym = gpupool_find_next_dlsym();
  front.abi = GPUPOOL_FRONT_ABI;
  front.hook_count = GPUPOOL_ROWS;
  front.version = GPUPOOL_VERSION;
  front.hook_names = kNames;
  front.real_dlsym = (dlsym_fn)gpupool_next_dlsym;
  front.driver = held;
  front.directory = directory;
  const int refusal = core_start(&front, hooks);
  if (refusal == 0) return kOnCore;
  if (refusal == GPUPOOL_CORE_OF_ANOTHER_BUILD)
    say("the core is of another build than this front, which is " GPUPOOL_VERSION ": ", path, 0);
  else
    say("the core does not work here: ", path, 0);
  return kOnDriver;
}

static uint64_t wait_for_starter(uint64_t starter, uint64_t self) {
  if (starter == self) return kOnDriver;
  if (starter >> 32 != self >> 32) {
    __atomic_compare_exchange_n(&state, &starter, kOnDriver, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return kOnDriver;
  }
  const struct timespec pause = {0, 1000000};
  for (int waited = 0; waited < kWaitMilliseconds; ++waited) {
    const uint64_t now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
    if (now <= kOnDriver) return now;
    gpupool_syscall(__NR_nanosleep, (long)&pause, 0, 0, 0);
  }
  return kOnDriver;
}

static void* resolve(unsigned row) {
  struct gpupool_object driver;
  uint64_t now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
  if (!gpupool_find_driver(&driver)) return (void*)no_driver;
  if (now != kOnCore && now != kOnDriver) {
    const uint64_t self =
        (uint64_t)gpupool_syscall(__NR_getpid, 0, 0, 0, 0) << 32 | (uint64_t)gpupool_syscall(__NR_gettid, 0, 0, 0, 0);
    if (now == kUnstarted && __atomic_compare_exchange_n(&state, &now, self, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      now = start(&driver);
      __atomic_store_n(&state, now, __ATOMIC_RELEASE);
    } else if (now > kOnDriver) {
      now = wait_for_starter(now, self);
    }
  }
  void* target = now == kOnCore ? hooks[row] : 0;
  if (!target) target = gpupool_symbol_in(driver.base, driver.dynamic, gpupool_row_name(row));
  if (!target) return (void*)not_found;
  if (now == __atomic_load_n(&state, __ATOMIC_ACQUIRE))
    __atomic_store_n(&gpupool_targets[row], target, __ATOMIC_RELEASE);
  return target;
}

/* Called by the stubs: where this call, and mostly every later one, shall go. */
void* gpupool_resolve(unsigned row) {
  const struct gpupool_errno saved = gpupool_errno_save();
  void* target = resolve(row);
  gpupool_errno_restore(saved);
  return target;
}
