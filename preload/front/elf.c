/* Finds functions in loaded objects by reading the loader's own tables: the list of link maps and each object's hash
 * table.
 *
 * Why not dlsym: it is what we replace, its versions differ between C libraries (2.17 to 2.43, musl), and asking for
 * one allocates. The list is read without the loader's lock only for objects present since start-up (the C library,
 * other preloads); the driver, which may come and go with dlopen, is found through the C library's dl_iterate_phdr,
 * which takes that lock. Format: System V ABI, chapter 5 (hash tables), and the GNU hash section. */
#include "preload/front/front.h"

#include <elf.h>

#define FROM_LOADER __attribute__((weak, visibility("default")))
extern struct r_debug _r_debug FROM_LOADER;        /* glibc */
extern struct r_debug* _dl_debug_addr FROM_LOADER; /* musl */
extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

static const struct link_map* first_map(void) {
  if (&_r_debug) return _r_debug.r_map;
  return &_dl_debug_addr && _dl_debug_addr ? _dl_debug_addr->r_map : 0;
}

/* glibc adds the base to the pointers of a dynamic section, musl and the vDSO do not. */
static uintptr_t located(ElfW(Addr) base, ElfW(Addr) pointer) { return pointer < base ? base + pointer : pointer; }

struct tables {
  const ElfW(Sym) * symbols;
  const char* strings;
  const uint32_t* gnu_hash;
  const uint32_t* hash;
  const ElfW(Half) * versions;
  const char* soname;
};

static struct tables read_tables(ElfW(Addr) base, const ElfW(Dyn) * dynamic) {
  struct tables t = {0, 0, 0, 0, 0, 0};
  ElfW(Addr) soname = 0;
  int named = 0;
  for (; dynamic && dynamic->d_tag != DT_NULL; ++dynamic) {
    const uintptr_t at = located(base, dynamic->d_un.d_ptr);
    switch (dynamic->d_tag) {
      case DT_SYMTAB:
        t.symbols = (const ElfW(Sym)*)at;
        break;
      case DT_STRTAB:
        t.strings = (const char*)at;
        break;
      case DT_GNU_HASH:
        t.gnu_hash = (const uint32_t*)at;
        break;
      case DT_HASH:
        t.hash = (const uint32_t*)at;
        break;
      case DT_VERSYM:
        t.versions = (const ElfW(Half)*)at;
        break;
      case DT_SONAME:
        soname = dynamic->d_un.d_val, named = 1;
        break;
      default:
        break;
    }
  }
  if (named && t.strings) t.soname = t.strings + soname;
  return t;
}

/* Hidden versions (bit 15 of the version index) are old ABIs kept for old programs. */
static void* defined_here(const struct tables* t, ElfW(Addr) base, uint32_t index, const char* name) {
  const ElfW(Sym)* symbol = &t->symbols[index];
  if (symbol->st_shndx == SHN_UNDEF || symbol->st_value == 0 || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC) return 0;
  if (t->versions && (t->versions[index] & 0x8000u)) return 0;
  return gpupool_equal(t->strings + symbol->st_name, name) ? (void*)(base + symbol->st_value) : 0;
}

static void* find_by_gnu_hash(const struct tables* t, ElfW(Addr) base, const char* name) {
  const uint32_t buckets = t->gnu_hash[0], first_index = t->gnu_hash[1], bloom_words = t->gnu_hash[2],
                 shift = t->gnu_hash[3];
  const ElfW(Addr)* bloom = (const ElfW(Addr)*)(t->gnu_hash + 4);
  const uint32_t* bucket = (const uint32_t*)(bloom + bloom_words);
  const uint32_t* chain = bucket + buckets;
  uint32_t hash = 5381;
  for (const char* c = name; *c; ++c) hash = hash * 33 + (unsigned char)*c;
  if (!buckets || !bloom_words) return 0;
  const unsigned bits = 8 * sizeof(ElfW(Addr));
  const ElfW(Addr) word = bloom[(hash / bits) % bloom_words];
  if (!(word >> (hash % bits) & word >> ((hash >> shift) % bits) & 1)) return 0;
  uint32_t index = bucket[hash % buckets];
  if (index < first_index) return 0;
  for (;; ++index) {
    const uint32_t entry = chain[index - first_index];
    if ((entry | 1u) == (hash | 1u)) {
      void* found = defined_here(t, base, index, name);
      if (found) return found;
    }
    if (entry & 1u) return 0;
  }
}

static void* find_by_sysv_hash(const struct tables* t, ElfW(Addr) base, const char* name) {
  const uint32_t buckets = t->hash[0];
  const uint32_t* bucket = t->hash + 2;
  const uint32_t* chain = bucket + buckets;
  uint32_t hash = 0;
  for (const char* c = name; *c; ++c) {
    hash = (hash << 4) + (unsigned char)*c;
    hash = (hash ^ (hash >> 24 & 0xf0u)) & 0x0fffffffu;
  }
  if (!buckets) return 0;
  for (uint32_t index = bucket[hash % buckets]; index != STN_UNDEF; index = chain[index]) {
    void* found = defined_here(t, base, index, name);
    if (found) return found;
  }
  return 0;
}

void* gpupool_symbol_in(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const char* name) {
  const struct tables t = read_tables(base, dynamic);
  if (!t.symbols || !t.strings) return 0;
  if (t.gnu_hash) return find_by_gnu_hash(&t, base, name);
  return t.hash ? find_by_sysv_hash(&t, base, name) : 0;
}

static const char* base_name(const char* path) {
  const char* base = path ? path : "";
  for (const char* c = base; *c; ++c)
    if (*c == '/') base = c + 1;
  return base;
}

static int begins(const char* text, const char* with) {
  while (*with)
    if (*text++ != *with++) return 0;
  return 1;
}

static const char* object_name(const struct link_map* map) {
  const struct tables t = read_tables(map->l_addr, map->l_ld);
  return t.soname ? t.soname : base_name(map->l_name);
}

void* gpupool_libc_symbol(const char* name) {
  for (const struct link_map* map = first_map(); map; map = map->l_next) {
    if (map->l_ld == _DYNAMIC) continue;
    const char* object = object_name(map);
    if (!begins(object, "libc.") && !begins(object, "libdl.") && !begins(object, "ld-")) continue;
    void* found = gpupool_symbol_in(map->l_addr, map->l_ld, name);
    if (found) return found;
  }
  return 0;
}

static const struct link_map* own_map(void) {
  const struct link_map* map = first_map();
  while (map && map->l_ld != _DYNAMIC) map = map->l_next;
  return map;
}

int gpupool_is_second(void) {
  for (const struct link_map* map = first_map(); map && map->l_ld != _DYNAMIC; map = map->l_next)
    if (gpupool_equal(object_name(map), "libgpupool.so")) return 1;
  return 0;
}

const char* gpupool_own_name(void) {
  const struct link_map* map = own_map();
  return map ? map->l_name : 0;
}

void* gpupool_find_next_dlsym(void) {
  const struct link_map* self = own_map();
  for (const struct link_map* map = self ? self->l_next : 0; map; map = map->l_next) {
    void* found = gpupool_symbol_in(map->l_addr, map->l_ld, "dlsym");
    if (found) return found;
  }
  return gpupool_libc_symbol("dlsym"); /* opened late: the C library comes before us */
}

static int see_object(struct dl_phdr_info* info, size_t bytes, void* out) {
  struct gpupool_object object = {info->dlpi_addr, 0, info->dlpi_name, UINTPTR_MAX, 0};
  (void)bytes;
  for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* header = &info->dlpi_phdr[i];
    const uintptr_t first = info->dlpi_addr + header->p_vaddr;
    if (header->p_type == PT_DYNAMIC) object.dynamic = (const ElfW(Dyn)*)first;
    if (header->p_type != PT_LOAD) continue;
    if (first < object.first) object.first = first;
    if (first + header->p_memsz > object.last) object.last = first + header->p_memsz;
  }
  const struct tables t = read_tables(object.base, object.dynamic);
  const char* name = t.soname ? t.soname : base_name(object.name);
  if (!gpupool_equal(name, "libcuda.so.1") && !gpupool_equal(name, "libcuda.so")) return 0;
  *(struct gpupool_object*)out = object;
  return 1;
}

int gpupool_find_driver(struct gpupool_object* driver) {
  typedef int (*iterate_fn)(int (*)(struct dl_phdr_info*, size_t, void*), void*);
  iterate_fn iterate = (iterate_fn)gpupool_libc_symbol("dl_iterate_phdr");
  return iterate && iterate(see_object, driver) == 1;
}
