/* In every program of ours that is built with AddressSanitizer: a preload may come before its library, as the front
 * does, what is undefined ends the program, and a forked child looks for no leaks: its parent's other threads may have
 * held the allocator's locks, for which that look would wait for ever. Environment variables of the same names add to
 * this. */
#include <sys/types.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED const char* __asan_default_options(void);
EXPORTED const char* __ubsan_default_options(void);
EXPORTED const char* __lsan_default_suppressions(void);
EXPORTED int __lsan_is_turned_off(void);

EXPORTED const char* __asan_default_options(void) { return "verify_asan_link_order=0:detect_stack_use_after_return=0"; }
/* Kept to the end of the process on purpose, by us and by ncurses. */
EXPORTED const char* __lsan_default_suppressions(void) { return "leak:gpupool::MemoryPools::adopt\nleak:new_prescr\n"; }
EXPORTED const char* __ubsan_default_options(void) { return "halt_on_error=1:print_stacktrace=1"; }

static pid_t first;
__attribute__((constructor)) static void remember(void) { first = getpid(); }
EXPORTED int __lsan_is_turned_off(void) { return getpid() != first; }
