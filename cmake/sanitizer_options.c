/* In every program of ours that is built with AddressSanitizer: a preload may come before its library, as the front
 * does, and what is undefined ends the program. Environment variables of the same names add to this. */
#define EXPORTED __attribute__((visibility("default")))

EXPORTED const char* __asan_default_options(void);
EXPORTED const char* __ubsan_default_options(void);
EXPORTED const char* __lsan_default_suppressions(void);

EXPORTED const char* __asan_default_options(void) { return "verify_asan_link_order=0:detect_stack_use_after_return=0"; }
/* Kept to the end of the process on purpose, by us and by ncurses. */
EXPORTED const char* __lsan_default_suppressions(void) { return "leak:gpupool::MemoryPools::adopt\nleak:new_prescr\n"; }
EXPORTED const char* __ubsan_default_options(void) { return "halt_on_error=1:print_stacktrace=1"; }
