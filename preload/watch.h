// The body of every WATCH row of hooks.def: count the call and its bytes, and if it is out of memory while a pool has
// some free, give that back and try once more. One template, instantiated by core.cpp for each row; a row that says how
// many bytes it takes has a line in watched_bytes().
#pragma once

#include "preload/real.h"

#include <tuple>

#include "preload/serve.h"

namespace gpupool {

std::uint64_t array_bytes(const CUDA_ARRAY_DESCRIPTOR* array);
std::uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR* array);

/// Bytes that a call of this row takes, 0 where it does not say.
template <HookRow row, class Arguments>
std::uint64_t watched_bytes(const Arguments& arguments) {
  if constexpr (row == kRow_cuMemCreate || row == kRow_cuMemAllocManaged || row == kRow_cuMemHostAlloc ||
                row == kRow_cuMemAllocHost_v2) {
    return std::get<1>(arguments);
  } else if constexpr (row == kRow_cuArrayCreate_v2 || row == kRow_cuArray3DCreate_v2 ||
                       row == kRow_cuMipmappedArrayCreate) {
    return array_bytes(std::get<1>(arguments));
  } else {
    return 0;
  }
}

/// Whether the row's bytes lie in host memory, which no pool of ours could have served.
constexpr bool takes_host_memory(HookRow row) { return row == kRow_cuMemHostAlloc || row == kRow_cuMemAllocHost_v2; }

/// Calls that may come by the thousand: they are counted only where they are out of memory. A graph that cannot get the
/// memory of its allocation nodes has not begun.
constexpr bool is_frequent(HookRow row) { return row == kRow_cuGraphLaunch || row == kRow_cuGraphLaunch_ptsz; }

template <HookRow row, auto& function, class Function = std::remove_reference_t<decltype(function)>>
struct Watch;

template <HookRow row, auto& function, class... Arguments>
struct Watch<row, function, CUresult (*)(Arguments...)> {
  static CUresult call(Arguments... arguments) {
    const Guard guard;
    const auto ask = [&] { return function(arguments...); };
    if (guard.nested()) return ask();
    if constexpr (is_frequent(row)) {
      if (const CUresult result = ask(); !out_of_memory(result)) return result;
    }
    return watched(guard, row, watched_bytes<row>(std::tie(arguments...)), ask);
  }
};

}  // namespace gpupool
