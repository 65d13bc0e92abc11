// See driver.h.
#include "tests/differential/driver.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace differential {
namespace {

#define SYMBOL_TEXT(symbol) #symbol
#define SYMBOL(name) SYMBOL_TEXT(name)

template <class Function>
void look_up(void* library, const char* symbol, Noted<Function>& out) {
  out = {reinterpret_cast<decltype(out.function)>(dlsym(library, symbol)), symbol};
  if (out.function) return;
  std::fprintf(stderr, "differential: the driver has no %s\n", symbol);
  std::exit(2);
}

Driver load() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) {
    std::fprintf(stderr, "differential: %s\n", dlerror());
    std::exit(2);
  }
  Driver found;
#define FUNCTION(name) look_up(library, SYMBOL(name), found.name##_);
#include "tests/differential/driver.def"
#undef FUNCTION
  return found;
}

}  // namespace

const Driver& driver() {
  static const Driver loaded = load();
  return loaded;
}

}  // namespace differential
