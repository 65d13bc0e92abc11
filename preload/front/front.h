/* What the parts of the front share: stubs (assembly), the loader's data (elf.c), the core's start (start.c), dlsym
 * (lookup.c).
 *
 * The front lies in every process of a preloaded session, so it links with nothing, has no constructor and no thread,
 * and never calls through its own imports: functions of libc are looked up, when needed, in the loader's list of
 * objects. Everything here is hidden; hooks.def and dlsym are the only exports. No locks: state is a few words changed
 * by atomic operations. */
#ifndef GPUPOOL_PRELOAD_FRONT_FRONT_H
#define GPUPOOL_PRELOAD_FRONT_FRONT_H

#define GPUPOOL_STUB_BYTES \
  32 /* one exported stub; every stub has this size, so that its address follows from its row */

#ifndef __ASSEMBLER__
#include <link.h>
#include <stdint.h>

enum gpupool_row {
#define HOOK(symbol, base, version, flags, kind) GPUPOOL_ROW_##symbol,
#include "preload/hooks.def"
#undef HOOK
  GPUPOOL_ROWS
};

#define GPUPOOL_LONGEST_NAME 64 /* more than any name of hooks.def, with its end */

extern char gpupool_stubs[] __attribute__((visibility("hidden"))); /* the first exported stub */
extern void* gpupool_targets[GPUPOOL_ROWS]
    __attribute__((visibility("hidden"))); /* where a stub jumps; NULL until its first call */
extern void* gpupool_next_dlsym
    __attribute__((visibility("hidden"))); /* where our dlsym continues; NULL until its first call */

/* The name of a row. */
const char* gpupool_row_name(unsigned row);

/* A loaded object: enough to look a symbol up in it, or to tell whether an address lies in it. */
struct gpupool_object {
  ElfW(Addr) base;
  const ElfW(Dyn) * dynamic;
  const char* name;
  uintptr_t first, last;
};

/* The default version of a function that the object defines, or NULL. Allocation-free, takes no lock, sets no error. */
void* gpupool_symbol_in(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const char* name);
/* The same in the C library (libc, libdl or musl), past anybody's interposition. */
void* gpupool_libc_symbol(const char* name);
/* The next dlsym in load order after ours: another interposer's, or the C library's. */
void* gpupool_find_next_dlsym(void);
/* The CUDA driver, if the process has loaded one. Loads nothing. */
int gpupool_find_driver(struct gpupool_object* driver);
/* Whether another copy of the front, from another file, was loaded before this one: then that one acts. */
int gpupool_is_second(void);
/* The path under which the loader knows this object. */
const char* gpupool_own_name(void);

/* Writes the absolute path of the folder that holds this object, with the final '/'. Returns its length, 0 when
 * unknown. */
unsigned gpupool_own_directory(char* path, unsigned bytes);

/* Whether gpupool acts in this process: no GPUPOOL_DISABLE, no secure execution, no earlier copy of the front.
 * Decided once. */
int gpupool_allowed(void);

unsigned gpupool_length(const char* text);
int gpupool_equal(const char* a, const char* b);
/* Appends text at the offset, as much as fits with an end; returns the new length. */
unsigned gpupool_append(char* to, unsigned length, unsigned bytes, const char* text);

/* Keeps the program's errno over whatever the front calls. */
struct gpupool_errno {
  int* where;
  int value;
};
struct gpupool_errno gpupool_errno_save(void);
void gpupool_errno_restore(struct gpupool_errno saved);
#endif
#endif
