// hooks.def as a table of C++. A row's index is its place in what gpupool_core_start fills (front/abi.h).
// Constant data; any thread.
#pragma once

namespace gpupool {

enum class HookKind { POOL, TRUTH, WATCH, TRACK, LOOKUP };

// What CU_GET_PROC_ADDRESS_* calls the flavour of stream 0; the values are cuGetProcAddress's flag bits.
enum HookStream : unsigned { kStream_0 = 0, kStream_PTSZ = 2 };

struct Hook {
  const char* symbol;
  const char* base;
  int version;  // as cuGetProcAddress counts: 1000 x major + 10 x minor
  HookStream stream;
  HookKind kind;
};

inline constexpr Hook kHooks[] = {
#define HOOK(symbol, base, version, flags, kind) {#symbol, #base, version, kStream_##flags, HookKind::kind},
#include "preload/hooks.def"
#undef HOOK
};
inline constexpr unsigned kHookCount = sizeof kHooks / sizeof kHooks[0];

}  // namespace gpupool
