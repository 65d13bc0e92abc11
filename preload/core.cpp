// The entry of the core: the front calls it once, at the process's first hooked CUDA call, with the loader's dlsym and
// the driver. Reads the configuration, finds the driver's functions, and hands back what a call of each row of
// hooks.def shall reach. Makes no CUDA call. The destructor writes the report of the process that had the pool.
#include "preload/real.h"

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "config/processes.h"
#include "pool/lock_order.h"
#include "preload/boundary.h"
#include "preload/front/abi.h"
#include "preload/log.h"
#include "preload/process.h"
#include "preload/report.h"
#include "preload/watch.h"

namespace gpupool {

namespace real {
#define HOOK(symbol, base, version, flags, kind) decltype(symbol) symbol = nullptr;
#include "preload/hooks.def"
#undef HOOK
}  // namespace real

namespace hook {

CUresult cuGetProcAddress(const char* name, void** function, int version, cuuint64_t flags) {
  return get_proc_address(setup().resolver, name, function, version, flags);
}

CUresult cuGetProcAddress_v2(const char* name, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  return get_proc_address_v2(setup().resolver, name, function, version, flags, status);
}

}  // namespace hook

namespace {

static_assert(kHookRows == kHookCount);

std::string executable() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : std::string();
}

void find_real_functions(const gpupool_front& front) {
#define HOOK(symbol, base, version, flags, kind) \
  real::symbol = reinterpret_cast<decltype(real::symbol)>(front.real_dlsym(front.driver, #symbol));
#include "preload/hooks.def"
#undef HOOK
}

// A function that the driver lacks gets no hook either: its lookup has to fail as it does natively.
template <class Function>
void* hook_or_none(Function real_function, Function hook_function) {
  return real_function ? reinterpret_cast<void*>(hook_function) : nullptr;
}

#define GPUPOOL_BODY_POOL(symbol) &hook::symbol
#define GPUPOOL_BODY_TRUTH(symbol) &hook::symbol
#define GPUPOOL_BODY_TRACK(symbol) &hook::symbol
#define GPUPOOL_BODY_LOOKUP(symbol) &hook::symbol
#define GPUPOOL_BODY_WATCH(symbol) &Watch<kRow_##symbol, real::symbol>::call

void fill_with_hooks(void** hooks) {
#define HOOK(symbol, base, version, flags, kind) \
  hooks[kRow_##symbol] = hook_or_none(real::symbol, Boundary<GPUPOOL_BODY_##kind(symbol)>::call);
#include "preload/hooks.def"
#undef HOOK
}

void fill_with_driver(void** hooks) {
#define HOOK(symbol, base, version, flags, kind) hooks[kRow_##symbol] = reinterpret_cast<void*>(real::symbol);
#include "preload/hooks.def"
#undef HOOK
}

bool of_this_build(const gpupool_front& front) {
  if (front.abi != GPUPOOL_FRONT_ABI || front.hook_count != kHookRows) return false;
  if (std::string_view(front.version) != GPUPOOL_VERSION) return false;
  const char* name = front.hook_names;
  for (const Hook& hook : kHooks) {
    if (std::string_view(name) != hook.symbol) return false;
    name += std::strlen(name) + 1;
  }
  return true;
}

void say_lock_order(const char* wanted, const char* held) {
  std::fprintf(stderr, "gpupool: lock order: %s is wanted while %s is held\n", wanted, held);
}

int start(const gpupool_front& front, void** hooks) {
  if (!of_this_build(front)) return GPUPOOL_CORE_OF_ANOTHER_BUILD;
  LocksHeld::report = say_lock_order;
  auto fresh = std::make_unique<Setup>();
  Loaded loaded = load(environ);
  log::configure(loaded.options.log.level, expand_path(loaded.options.log.path, getpid()));
  for (const Diagnostic& diagnostic : loaded.diagnostics) {
    log::write(diagnostic.severity == Severity::warning ? LogLevel::warn : LogLevel::info, diagnostic.message());
  }
  fresh->options = std::move(loaded.options);
  fresh->executable = executable();
  find_real_functions(front);
  if (fresh->options.pool.strategy == Strategy::off || !gets_pool(fresh->options.processes, fresh->executable)) {
    fill_with_driver(hooks);
    log::identify("no pool for " + fresh->executable + ", by pool.strategy or processes");
    return 0;
  }
  if (const char* missing = fresh->api.load(front.real_dlsym, front.driver)) {
    log::warn("the driver is too old: it has no " + std::string(missing));
    return 1;
  }
  fill_with_hooks(hooks);
  fill_with_hooks(fresh->hooks);
  fresh->resolver = {real::cuGetProcAddress, real::cuGetProcAddress_v2, fresh->hooks};
  begin_process(*fresh.release());
  return 0;
}

}  // namespace
}  // namespace gpupool

extern "C" __attribute__((visibility("default"))) int gpupool_core_start(const gpupool_front* front, void** hooks) {
  try {
    const gpupool::Guard guard;
    return gpupool::start(*front, hooks);
  } catch (...) {
    return 1;
  }
}

namespace {

__attribute__((destructor)) void end() {
  const int kept = errno;
  gpupool::finish_process();
  errno = kept;
}

}  // namespace
