// See driver.h.
#include "tests/differential/driver.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace differential {
namespace {

#define SYMBOL_TEXT(symbol) #symbol
#define MEANT_BY_HEADER(name) SYMBOL_TEXT(name)

Spelling spelling = Spelling::kNewest;

const char* older(const char* name) {
#define FUNCTION(name)
#define OLDER(function, symbol) \
  if (std::strcmp(name, #function) == 0) return #symbol;
#define SYMBOL(symbol, ...)
#include "tests/differential/driver.def"
#undef FUNCTION
#undef OLDER
#undef SYMBOL
  return nullptr;
}

void* per_thread(void* library, const char* name) {
  using Get = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
  const auto get = reinterpret_cast<Get>(dlsym(library, "cuGetProcAddress_v2"));
  void* found = nullptr;
  CUdriverProcAddressQueryResult status{};
  if (!get || get(name, &found, CUDA_VERSION, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status)) return nullptr;
  return found;
}

template <class Function>
void look_up(void* library, const char* name, const char* meant, Noted<Function>& out) {
  const char* symbol = meant;
  if (const char* other = older(name); other && spelling == Spelling::kOldest) symbol = other;
  void* found = spelling == Spelling::kPerThread ? per_thread(library, name) : dlsym(library, symbol);
  out = {reinterpret_cast<decltype(out.function)>(found), symbol};
  if (out.function) return;
  std::fprintf(stderr, "differential: the driver has no %s\n", symbol);
  std::exit(2);
}

template <class Function>
void look_up_older(void* library, const char* symbol, Noted<Function>& out) {
  out = {reinterpret_cast<decltype(out.function)>(dlsym(library, symbol)), symbol};
}

Driver load() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) {
    std::fprintf(stderr, "differential: %s\n", dlerror());
    std::exit(2);
  }
  Driver found;
#define FUNCTION(name) look_up(library, #name, MEANT_BY_HEADER(name), found.name##_);
#define OLDER(name, symbol)
#define SYMBOL(symbol, ...) look_up_older(library, #symbol, found.older_##symbol);
#include "tests/differential/driver.def"
#undef FUNCTION
#undef OLDER
#undef SYMBOL
  return found;
}

}  // namespace

bool choose_spelling(const std::string& name) {
  if (name == "newest") return spelling = Spelling::kNewest, true;
  if (name == "per-thread") return spelling = Spelling::kPerThread, true;
  if (name == "oldest") return spelling = Spelling::kOldest, true;
  return false;
}

const Driver& driver() {
  static const Driver loaded = load();
  return loaded;
}

}  // namespace differential
